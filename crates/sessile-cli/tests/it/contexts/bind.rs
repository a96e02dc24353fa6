//! `--bind`: targets without a context file, in sessions that are pinned to an anonymous context.

use testkit::Home;

use crate::home;

fn home_with_targets() -> Home {
    let home = home();
    let entry = |name: &str| {
        [
            format!("- name: {name}\n  cluster: {{server: 'https://{name}.invalid'}}\n"),
            format!("- name: {name}\n  user: {{token: token-of-{name}}}\n"),
            format!("- name: {name}\n  context: {{cluster: {name}, user: {name}, namespace: web}}\n"),
        ]
    };
    let entries: Vec<[String; 3]> = ["dev", "staging", "production", "a b$(id)"].map(entry).into();
    let list = |at: usize| entries.iter().map(|entry| entry[at].as_str()).collect::<String>();
    home.write(
        ".kube/config",
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: dev\nclusters:\n{}users:\n{}contexts:\n{}",
            list(0),
            list(1),
            list(2)
        ),
    );
    home.write(".aws/config", "[profile web]\nregion = eu-1\n[profile other]\nregion = eu-2\n");
    home
}

const CURRENT: &[&str] = &["kubectl", "config", "current-context"];

#[test]
fn run_needs_no_context_file() {
    let home = home_with_targets();
    let flags = ["--bind", "kubectl.context=staging", "--bind", "aws.profile=web"];
    let run = |command: &[&str]| {
        home.call(&["run"]).args(&flags).args(&["--"]).args(command).with_tools().ok().stdout()
    };
    assert_eq!(run(CURRENT), "staging\n");
    assert_eq!(run(&["sh", "-c", "echo $AWS_PROFILE"]), "web\n");
    assert_eq!(run(&["kubectl", "config", "get-contexts", "-o", "name"]), "staging\n", "strict");
    assert!(!home.path(".config/sessile/contexts").exists());
}

#[test]
fn session_shows_its_anonymous_context() {
    let home = home_with_targets();
    let bind = ["--bind", "kubectl.context=staging", "--bind", "aws.profile=web"];
    home.call(&["session", "start", "--name", "s"]).args(&bind).ok();
    let status = home.call(&["status", "--session", "s"]).ok().stdout();
    assert!(status.contains("anonymous (aws.profile=web, kubectl.context=staging)"), "{status}");
    let shown = home.call(&["session", "show", "s"]).ok().stdout();
    assert!(shown.contains("anonymous (aws.profile=web, kubectl.context=staging)"), "{shown}");
    let json = home.call(&["session", "show", "s", "-ojson"]).ok().json();
    assert_eq!(json["context"], "aws.profile=web,kubectl.context=staging");
    assert_eq!(json["context_bindings"][1], "kubectl.context=staging");
    let context = home.call(&["context", "show", "--session", "s", "-ojson"]).ok().json();
    assert_eq!(context["home"], "anonymous");
    assert_eq!(context["tools"]["kubectl"]["context"], "staging");
    assert_eq!(
        home.call(&["run", "--session", "s", "--"]).args(CURRENT).with_tools().ok().stdout(),
        "staging\n"
    );
}

#[test]
fn session_keeps_its_bindings() {
    let home = home_with_targets();
    home.call(&["run", "--session", "s", "--bind", "kubectl.context=staging", "--", "true"]).ok();
    // The same bindings are the same context.
    home.call(&["run", "--session", "s", "--bind", "kubectl.context=staging", "--", "true"]).ok();
    let other =
        home.call(&["run", "--session", "s", "--bind", "kubectl.context=dev", "-ojson", "--", "true"]);
    assert_eq!(other.run().exit(125).code(), "CONTEXT_FIXED");
    home.call(&["session", "stop", "s"]).ok();
    let again = home.call(&["run", "--new", "--session", "s", "--"]).args(CURRENT).with_tools().ok();
    assert_eq!(again.stdout(), "staging\n", "a session that is started again keeps its context");
}

#[test]
fn exported_session_keeps_its_bindings() {
    let home = home_with_targets();
    home.call(&["session", "start", "--name", "s", "--bind", "kubectl.context=staging"]).ok();
    let text = home.call(&["session", "export", "s"]).ok().stdout();
    home.write("s.json", text);
    home.call(&["session", "import", "s.json", "--name", "t"]).ok();
    assert_eq!(
        home.call(&["run", "--session", "t", "--"]).args(CURRENT).with_tools().ok().stdout(),
        "staging\n"
    );
}

#[test]
fn wrong_bindings_are_refused_before_a_session_starts() {
    let home = home_with_targets();
    let run =
        |bind: &str| home.call(&["run", "--session", "s", "--bind", bind, "-ojson", "--", "true"]).run();
    assert_eq!(run("kubectl").exit(125).code(), "INVALID_VALUE");
    assert_eq!(run("kubctl.context=dev").exit(125).code(), "TOOL_NOT_FOUND");
    assert_eq!(run("kubectl.contxt=dev").exit(125).code(), "BINDING_INVALID");
    assert_eq!(run("kubectl.context=nowhere").exit(125).code(), "BINDING_NOT_FOUND");
    assert_eq!(
        run("npm.auth-token=npm_abcdefghijklmnopqrstuvwxyz0123456789").exit(125).code(),
        "SECRET_REFUSED"
    );
    let both = ["run", "--context", "c", "--bind", "kubectl.context=dev", "-ojson", "--", "true"];
    assert!(home.call(&both).run().exit(125).told().contains("exclude each other"));
    assert_eq!(home.call(&["session", "list", "-ojson"]).ok().json().as_array().unwrap().len(), 0);
}

#[test]
fn protected_target_is_refused_and_stays_withheld() {
    let home = home_with_targets();
    home.call(&["context", "create", "prod", "--guard", "approval", "--bind", "kubectl.context=production"])
        .ok();
    let refused = home.call(&["run", "--bind", "kubectl.context=production", "-ojson", "--", "true"]).run();
    assert_eq!(refused.exit(125).code(), "PROTECTED_TARGET");
    let names = ["run", "--bind", "aws.profile=web", "--", "kubectl", "config", "get-contexts", "-o", "name"];
    let names = home.call(&names).with_tools().ok().stdout();
    assert!(names.contains("staging") && !names.contains("production"), "{names}");
}

#[test]
fn values_with_any_character_are_bound_and_harmless_in_a_prompt() {
    let home = home_with_targets();
    home.call(&["session", "start", "--name", "s", "--bind", "kubectl.context=a b$(id)"]).ok();
    assert_eq!(
        home.call(&["run", "--session", "s", "--"]).args(CURRENT).with_tools().ok().stdout(),
        "a b$(id)\n"
    );
    let prompt = home.call(&["prompt", "--session", "s"]).ok().stdout();
    assert_eq!(prompt, "s:kubectl.context=a%20b%24%28id%29\n");
}

#[test]
fn several_targets_of_a_tool_are_kept_and_the_first_is_selected() {
    let home = home_with_targets();
    let bind = ["run", "--bind", "kubectl.context=staging", "--bind", "kubectl.context=dev", "--"];
    let run = |command: &[&str]| home.call(&bind).args(command).with_tools().ok().stdout();
    assert_eq!(run(CURRENT), "staging\n");
    let mut names: Vec<String> =
        run(&["kubectl", "config", "get-contexts", "-o", "name"]).lines().map(str::to_owned).collect();
    names.sort();
    assert_eq!(names, ["dev", "staging"]);
}

#[test]
fn shell_opens_with_bindings() {
    let home = home_with_targets();
    let mut shell =
        home.call(&["shell", "--shell", "/bin/sh", "--bind", "kubectl.context=staging"]).with_tools().tty();
    let (text, status) = shell.run("echo ctx=$(kubectl config current-context).");
    assert!(status == 0 && text.contains("ctx=staging."), "{text}");
}

#[test]
fn context_is_created_from_what_tools_point_at() {
    let home = home_with_targets();
    let done = home
        .call(&["context", "create", "here", "--from-current", "-ojson"])
        .env("AWS_PROFILE", "web")
        .env("AWS_SECRET_ACCESS_KEY", "very-secret")
        .ok();
    assert_eq!(done.json()["name"], "here");
    let tools = home.call(&["context", "show", "here", "-ojson"]).ok().json()["tools"].clone();
    assert_eq!(tools["kubectl"], serde_json::json!({ "context": "dev", "namespace": "web" }));
    assert_eq!(tools["aws"], serde_json::json!({ "profile": "web" }));
    assert!(!home.read(".config/sessile/contexts/here.toml").contains("very-secret"));
    // A flag is stronger than what is current.
    let bind = ["context", "create", "there", "--from-current", "--bind", "kubectl.context=staging"];
    home.call(&bind).ok();
    let tools = home.call(&["context", "show", "there", "-ojson"]).ok().json()["tools"].clone();
    assert_eq!(tools["kubectl"]["context"], "staging");
}

#[test]
fn context_from_current_needs_a_current_target() {
    let home = home();
    let done = home.call(&["context", "create", "here", "--from-current", "-ojson"]).run().exit(2);
    assert!(done.told().contains("--bind"), "{}", done.told());
}
