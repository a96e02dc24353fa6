//! `sessile import`: contexts for the targets that the user's tools already have.

use testkit::{CallResult, Home};

use crate::home;

/// A kubeconfig with these contexts, each with a cluster and a user of its own, the first one current.
fn kubeconfig(contexts: &[&str]) -> String {
    let mut text = format!("apiVersion: v1\nkind: Config\ncurrent-context: {}\nclusters:\n", contexts[0]);
    let mut add = |heading: &str, line: fn(&str) -> String| {
        text.push_str(heading);
        contexts.iter().for_each(|name| text.push_str(&line(name)));
    };
    add("", |name| format!("- name: {name}\n  cluster: {{server: 'https://{name}.invalid'}}\n"));
    add("users:\n", |name| format!("- name: {name}\n  user: {{token: token-of-{name}}}\n"));
    add("contexts:\n", |name| format!("- name: {name}\n  context: {{cluster: {name}, user: {name}}}\n"));
    text
}

fn names(done: &CallResult) -> Vec<String> {
    let contexts = done.json();
    let contexts = contexts.as_array().unwrap_or_else(|| panic!("{}", done.told()));
    contexts.iter().map(|context| context["name"].as_str().unwrap().to_owned()).collect()
}

fn proposed(home: &Home) -> Vec<String> {
    names(&home.call(&["import", "--dry-run", "-ojson"]).ok())
}

/// A home whose tools know production and staging under various names.
fn home_with_targets() -> Home {
    let home = home();
    home.write(".kube/config", kubeconfig(&["gke_corp_europe-west1_prod", "staging"]));
    home.write(
        ".aws/config",
        "[default]\nregion = x\n[profile prd-admin]\nregion = x\n[profile stg]\nregion = x\n",
    );
    home
}

#[test]
fn targets_of_one_environment_become_one_context() {
    let home = home_with_targets();
    let before = home.tree_of_people();
    let done = home.call(&["import", "--dry-run", "-ojson"]).ok().json();
    let binds = |context: &serde_json::Value| -> Vec<String> {
        let targets = context["targets"].as_array().unwrap();
        targets.iter().map(|target| target["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(done[0]["name"], "production");
    assert_eq!(done[0]["guard"], "approval");
    assert_eq!(binds(&done[0]), ["prd-admin", "gke_corp_europe-west1_prod"]);
    assert_eq!(done[1]["name"], "staging");
    assert_eq!(done[1]["guard"], "none");
    assert_eq!(binds(&done[1]), ["stg", "staging"]);
    assert_eq!(home.tree_of_people(), before, "a dry run writes nothing");
}

#[test]
fn subscriptions_accounts_and_hosts_become_targets() {
    let home = home();
    let subscription = |number: u32, name: &str| {
        format!(
            "{{\"id\": \"{number:08}-0000-0000-0000-000000000000\", \"name\": \"{name}\", \"state\": \"Enabled\"}}"
        )
    };
    let subscriptions = [subscription(1, "shop-production"), subscription(2, "shop-staging")].join(", ");
    home.write(".azure/azureProfile.json", format!("{{\"subscriptions\": [{subscriptions}]}}"));
    home.write(
        ".config/gh/hosts.yml",
        "github.com:\n    users:\n        ann-production:\n            oauth_token: a\n        ann-staging:\n            \
         oauth_token: b\n    user: ann-staging\n    oauth_token: b\n",
    );
    home.write(
        ".config/glab-cli/config.yml",
        "hosts:\n    gitlab.production.example:\n        token: a\n    gitlab.staging.example:\n        token: b\n",
    );
    home.call(&["import", "--yes"]).ok();
    let shown = |name: &str| home.call(&["context", "show", name]).ok().stdout();
    for (context, guard) in [("production", "approval"), ("staging", "none")] {
        let text = shown(context);
        let targets =
            [format!("shop-{context}"), format!("ann-{context}"), format!("gitlab.{context}.example")];
        assert!(text.contains(guard) && targets.iter().all(|target| text.contains(target)), "{text}");
    }
    let run = |script: &str| {
        home.call(&["run", "--context", "staging", "--", "sh", "-c", script]).with_tools().ok()
    };
    let accounts =
        run("gh auth token; cat \"$GLAB_CONFIG_DIR/config.yml\" \"$AZURE_CONFIG_DIR/azureProfile.json\"")
            .stdout();
    assert!(accounts.starts_with("b\n") && accounts.contains("shop-staging"), "{accounts}");
    assert!(!accounts.contains("production"), "{accounts}");
}

#[test]
fn imported_contexts_are_used_by_the_real_tools() {
    let home = home_with_targets();
    let originals = [".kube/config", ".aws/config"].map(|file| home.read(file));
    home.call(&["import", "--yes"]).ok();
    let run = |command: &[&str]| {
        home.call(&["run", "--context", "staging", "--"]).args(command).with_tools().ok().stdout()
    };
    assert_eq!(run(&["kubectl", "config", "current-context"]), "staging\n");
    assert_eq!(run(&["sh", "-c", "echo $AWS_PROFILE"]), "stg\n");
    home.call(&["run", "--context", "production", "--", "true"]).run().exit(125);
    assert_eq!([".kube/config", ".aws/config"].map(|file| home.read(file)), originals);
}

#[test]
fn second_import_proposes_only_what_is_new() {
    let home = home_with_targets();
    home.call(&["import", "--yes"]).ok();
    assert!(home.call(&["import", "--yes"]).ok().stdout().contains("nothing new"));
    home.write(".docker/contexts/meta/x/meta.json", "{\"Name\": \"stage\"}");
    home.write(".kube/config", kubeconfig(&["gke_corp_europe-west1_prod", "staging", "dev"]));
    assert_eq!(proposed(&home), ["staging", "dev"]);
    let done = home.call(&["import", "--yes"]).ok().stdout();
    assert!(done.contains("added to context \"staging\": docker.context=stage"), "{done}");
    let staging = home.read(".config/sessile/contexts/staging.toml");
    assert!(staging.contains("profile = \"stg\"") && staging.contains("context = \"stage\""), "{staging}");
    assert_eq!(proposed(&home), Vec::<String>::new());
}

#[test]
fn context_that_exists_keeps_its_guard_and_its_bindings() {
    let home = home_with_targets();
    let own = "guard = \"explicit\"\n[tools.kubectl]\ncontext = \"elsewhere\"\n";
    home.write(".config/sessile/contexts/staging.toml", own);
    home.call(&["import", "--yes"]).ok();
    let staging = home.read(".config/sessile/contexts/staging.toml");
    assert!(staging.contains("explicit") && staging.contains("elsewhere"), "{staging}");
    assert!(staging.contains("profile = \"stg\""), "{staging}");
}

#[test]
fn file_of_a_tool_leads_to_the_import() {
    let home = home_with_targets();
    let told = home.call(&["context", "import", ".kube/config"]).run().exit(1).stderr();
    assert!(told.contains("hint:") && told.contains("sessile import"), "{told}");
    let told = home.call(&["import", "--only", "unknown-name"]).run().exit(2).stderr();
    assert!(told.contains("; proposed: "), "{told}");
    home.call(&["import", "--yes"]).ok();
    let told = home.call(&["import", "--only", "unknown-name"]).run().exit(2).stderr();
    assert!(told.contains("; nothing is new"), "{told}");
}

#[test]
fn script_must_say_yes() {
    let home = home_with_targets();
    let done = home.call(&["import", "-ojson"]).run().exit(2);
    assert_eq!(done.code(), "CONFIRMATION_REQUIRED");
    assert!(!home.path(".config/sessile/contexts").exists());
}

#[test]
fn plan_can_be_edited_before_it_is_applied() {
    let home = home_with_targets();
    home.call(&["import", "--plan", "plan.toml"]).ok();
    assert!(!home.path(".config/sessile/contexts").exists());
    let plan = home.read("plan.toml");
    home.write("plan.toml", plan.replace("contexts.staging", "contexts.test"));
    home.call(&["import", "apply", "plan.toml"]).ok();
    assert!(home.path(".config/sessile/contexts/test.toml").exists());
    assert!(!home.path(".config/sessile/contexts/staging.toml").exists());
    let again = home.call(&["import", "apply", "plan.toml"]).ok().stdout();
    assert!(again.contains("context \"test\" already has these bindings"), "{again}");
}

#[test]
fn person_chooses_from_a_list() {
    let home = home_with_targets();
    let mut terminal = home.call(&["import"]).env("TERM", "xterm").tty();
    terminal.expect("Contexts to create");
    terminal.expect("esc cancels");
    // Unmarks the first, which is production.
    terminal.type_line(" ");
    // None is marked: the tokens of kubectl stay where they are.
    let confirmed = terminal.expect("Credentials to copy to the vault");
    // Only names stay on the screen.
    let left = confirmed.rsplit("Contexts to create").next().unwrap();
    assert!(left.contains("staging") && !left.contains("aws"), "{confirmed}");
    terminal.expect("esc cancels");
    terminal.type_line("");
    let (text, status) = terminal.finish();
    assert_eq!(status, 0, "{text}");
    assert!(home.path(".config/sessile/contexts/staging.toml").exists(), "{text}");
    assert!(!home.path(".config/sessile/contexts/production.toml").exists(), "{text}");
}

#[test]
fn only_some_contexts_are_created() {
    let home = home_with_targets();
    home.call(&["import", "--only", "staging", "--yes"]).ok();
    assert!(home.path(".config/sessile/contexts/staging.toml").exists());
    assert!(!home.path(".config/sessile/contexts/production.toml").exists());
    let done = home.call(&["import", "--only", "nosuch", "--yes"]).run().exit(2);
    assert!(done.stderr().contains("production"), "the error names the proposed contexts: {}", done.told());
}

#[test]
fn context_that_is_missing_but_has_targets_is_offered() {
    let home = home_with_targets();
    let done = home.call(&["run", "--context", "staging", "-ojson", "--", "true"]).run().exit(125);
    let error = done.json_error();
    assert_eq!(error["code"], "CONTEXT_NOT_FOUND");
    assert_eq!(error["fix_command"], "sessile import --only staging");
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .starts_with("aws has \"stg\", kubectl has \"staging\"; create context"),
        "{error}"
    );
    let done = home.call(&["context", "show", "nosuch", "-ojson"]).run().exit(5);
    assert_eq!(done.json_error()["fix_command"], serde_json::Value::Null);
    let done = home.call(&["run", "--context", "nosuch", "--", "true"]).run().exit(125);
    assert!(done.stderr().contains("hint: create it: sessile context create nosuch"), "{}", done.told());
}

#[test]
fn name_of_a_target_leads_to_its_context() {
    let home = home();
    home.write(".kube/config", kubeconfig(&["prod", "dev"]));
    let run =
        || home.call(&["run", "--context", "prod", "-ojson", "--", "true"]).run().exit(125).json_error();
    let error = run();
    assert_eq!(error["fix_command"], "sessile import --only production");
    assert!(
        error["hint"].as_str().unwrap().starts_with("kubectl has \"prod\"; create context \"production\"")
    );
    home.call(&["import", "--only", "prod", "--yes"]).ok();
    assert!(home.path(".config/sessile/contexts/production.toml").exists());
    assert!(!home.path(".config/sessile/contexts/dev.toml").exists());
    assert_eq!(run()["hint"], "context \"production\" binds kubectl.context=prod: pass --context production");
}

#[test]
fn kube_context_named_default_is_proposed() {
    let home = home();
    home.write(".kube/config", kubeconfig(&["default"]));
    home.write(".aws/config", "[default]\nregion = x\n");
    home.write(".config/gcloud/configurations/config_default", "[core]\nproject = p\n");
    home.call(&["import", "--yes"]).ok();
    let text = home.read(".config/sessile/contexts/default.toml");
    assert!(text.contains("kubectl") && !text.contains("aws") && !text.contains("gcloud"), "{text}");
}

#[test]
fn target_without_ascii_letters_is_reported() {
    let home = home();
    home.write(".kube/config", kubeconfig(&["\u{43f}\u{440}\u{43e}\u{434}", "dev"]));
    let done = home.call(&["import", "--yes"]).ok();
    assert!(done.stderr().contains("no context name can be derived"), "{}", done.told());
    assert!(done.stderr().contains("sessile context create NAME --bind"), "{}", done.told());
    home.call(&["context", "create", "p", "--bind", "kubectl.context=\u{43f}\u{440}\u{43e}\u{434}"]).ok();
}

#[test]
fn targets_in_several_files_are_found_once() {
    let home = home();
    for (file, contexts) in [("a", &["dev", "shared"][..]), ("b", &["staging", "shared"]), ("c", &["qa"])] {
        home.write(format!("kube/{file}"), kubeconfig(contexts));
    }
    let files = ["a", "b", "c"].map(|file| home.path("kube").join(file).display().to_string()).join(":");
    let done = home.call(&["import", "scan", "-ojson"]).env("KUBECONFIG", files).ok();
    let tokens = ["kubectl-dev", "kubectl-shared", "kubectl-staging", "kubectl-qa"];
    assert_eq!(names(&done), [["dev", "shared", "staging", "qa"], tokens].concat());
}

#[test]
fn five_hundred_targets_are_proposed_with_names_of_their_own() {
    let home = home();
    let contexts: Vec<String> = (0..500).map(|number| format!("team{number}-prod")).collect();
    home.write(".kube/config", kubeconfig(&contexts.iter().map(String::as_str).collect::<Vec<_>>()));
    let proposed = proposed(&home);
    assert_eq!(proposed.len(), 500);
    assert!(proposed.contains(&"production-team499".to_owned()), "{proposed:?}");
}

#[test]
fn tool_whose_file_is_broken_does_not_stop_the_others() {
    let home = home_with_targets();
    home.write(".kube/config", "contexts: [");
    let done = home.call(&["import", "--dry-run", "-ojson"]).ok();
    assert_eq!(names(&done), ["production", "staging"]);
    assert!(done.stderr().contains(".kube/config"), "{}", done.told());
}

#[test]
fn import_is_refused_inside_a_session() {
    let home = home_with_targets();
    let program = home.program().display().to_string();
    home.call(&["run", "--", &program, "import", "--yes"]).run().exit(7);
}

#[test]
fn three_commands_lead_to_two_agents_in_two_contexts() {
    let home = home();
    home.write(".kube/config", kubeconfig(&["production", "staging", "dev"]));
    let mut shell = home.shell();
    shell.run(&format!("export PATH=\"$PATH:{}\"", testkit::tool_path().display()));
    let commands = [
        "sessile import --yes",
        "sessile run --context staging -- sh -c 'sleep 1; kubectl config current-context' >one & true",
        "sessile run --context dev -- kubectl config current-context >two",
    ];
    for command in commands {
        let (text, status) = shell.run(command);
        assert_eq!(status, 0, "{command}: {text}");
    }
    shell.run("wait");
    assert_eq!((home.read("one").as_str(), home.read("two").as_str()), ("staging\n", "dev\n"));
}

#[test]
fn workspaces_of_the_working_directory_are_imported() {
    let home = home_with_targets();
    for name in ["stage", "prod"] {
        home.write(format!("infra/terraform.tfstate.d/{name}/terraform.tfstate"), "{}");
    }
    home.call(&["import", "--yes"]).cwd("infra").ok();
    let staging = home.call(&["context", "show", "staging", "-ojson"]).ok().json();
    assert_eq!(staging["tools"]["terraform"]["workspace"], "stage");
    assert_eq!(staging["tools"]["kubectl"]["context"], "staging");
    let run = ["run", "--context", "staging", "--", "sh", "-c", "echo $TF_WORKSPACE"];
    assert_eq!(home.call(&run).cwd("infra").ok().stdout(), "stage\n");
    assert!(!home.call(&["import", "scan"]).ok().stdout().contains("terraform"), "elsewhere it has none");
}

/// A home with two configurations of one project and account.
fn home_with_an_alias() -> Home {
    let home = home();
    for name in ["prod", "staging"] {
        let file = format!(".config/gcloud/configurations/config_{name}");
        home.write(file, "[core]\nproject = p1\naccount = a@b.example\n");
    }
    home
}

fn contexts(home: &Home) -> Vec<String> {
    names(&home.call(&["context", "list", "-ojson"]).ok())
}

#[test]
fn imported_alias_of_a_guarded_target_is_reported() {
    let home = home_with_an_alias();
    let done = home.call(&["import", "--yes"]).ok();
    assert_eq!(contexts(&home), ["production", "staging"]);
    assert!(done.stderr().contains("is not protected"), "{}", done.told());
    let show = home.call(&["context", "show", "production"]).ok().stdout();
    assert!(show.contains("also bound by unguarded staging"), "{show}");
    assert_eq!(crate::history(&home).as_array().unwrap().len(), 1, "an import is one change");
}

#[test]
fn refused_import_writes_nothing() {
    let plan = "[contexts.dev]\n[contexts.staging.tools.gcloud]\nconfiguration = \"staging\"\n";
    for command in [&["context", "import", "plan.toml"][..], &["import", "apply", "plan.toml"]] {
        let home = home_with_an_alias();
        home.call(&[
            "context",
            "create",
            "prod",
            "--guard",
            "approval",
            "--bind",
            "gcloud.configuration=prod",
        ])
        .ok();
        home.write("plan.toml", plan);
        let done = home.call(command).arg("-ojson").run().exit(7);
        assert_eq!(done.code(), "GUARD_APPROVAL", "{}", done.told());
        assert_eq!(contexts(&home), ["prod"], "{}", done.told());
    }
}

#[test]
fn plan_with_a_name_that_is_not_utf8_is_written() {
    use std::os::unix::ffi::OsStrExt;
    let home = home_with_targets();
    let file = std::ffi::OsStr::from_bytes(b"\xff.toml");
    for format in ["text", "json"] {
        home.call(&["import", "--yes", "--output", format, "--plan"]).arg(file).ok();
    }
    assert!(home.path(file).exists());
}
