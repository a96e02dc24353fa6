//! Protected targets: what only guarded contexts bind exists in no other session.

use testkit::{Call, Home};

use crate::{home, room};

/// Contexts with a cluster and a user each; the first one is current.
pub(crate) fn clusters(names: &[&str]) -> String {
    let mut text = format!("apiVersion: v1\nkind: Config\ncurrent-context: {}\n", names[0]);
    let list = |kind: &str, line: &dyn Fn(&str) -> String| {
        format!("{kind}:\n{}", names.iter().map(|name| line(name)).collect::<String>())
    };
    text += &list("clusters", &|name| {
        format!("- name: c-{name}\n  cluster: {{server: 'https://{name}.example.invalid'}}\n")
    });
    text += &list("users", &|name| format!("- name: u-{name}\n  user: {{token: t-{name}}}\n"));
    text += &list("contexts", &|name| {
        format!("- name: {name}\n  context: {{cluster: c-{name}, user: u-{name}}}\n")
    });
    text
}

/// `production` needs an approval, `staging` needs nothing; the kube context of the same name belongs to each.
pub(super) fn guarded() -> Home {
    let home = home();
    home.write(".kube/config", clusters(&["staging", "production", "dev"]));
    for (name, guard) in [("production", "approval"), ("staging", "none")] {
        home.write(
            format!(".config/sessile/contexts/{name}.toml"),
            format!("guard = \"{guard}\"\n[tools.kubectl]\ncontext = \"{name}\"\n"),
        );
    }
    home
}

pub(super) fn run(home: &Home, flags: &[&str], command: &[&str]) -> Call {
    home.call(&["run"]).args(flags).args(&["--"]).args(command).with_tools()
}

pub(crate) fn approve(home: &Home, name: &str) {
    let (text, status) = home.shell().run(&format!("sessile context approve {name} --for 30m --yes"));
    assert_eq!(status, 0, "{text}");
}

pub(super) const CONTEXTS: &[&str] = &["kubectl", "config", "get-contexts", "-o", "name"];
const SHOW: &[&str] = &["sh", "-c", "cat \"$KUBECONFIG\""];

#[track_caller]
fn assert_withheld(copy: &str) {
    assert!(!copy.contains("production"), "neither the context nor its cluster, user or token: {copy}");
    assert!(copy.contains("t-staging"), "{copy}");
}

#[test]
fn staging_session_cannot_switch_to_production() {
    let home = guarded();
    let flags = ["--context", "staging", "--set", "tools.kubectl.strict=false"];
    for flags in [&flags[..], &flags[..2]] {
        let command = "kubectl config use-context production; kubectl config current-context";
        let done = run(&home, flags, &["sh", "-c", command]).ok();
        assert_eq!(done.stdout(), "staging\n");
        assert!(done.stderr().contains("no context exists with the name: \"production\""), "{}", done.told());
        let done = run(&home, flags, &["kubectl", "--context", "production", "get", "pods"]).run().exit(1);
        assert!(
            done.stderr().contains("context was not found for specified context: production"),
            "{}",
            done.told()
        );
        assert_withheld(&run(&home, flags, SHOW).ok().stdout());
    }
    assert_eq!(home.read(".kube/config"), clusters(&["staging", "production", "dev"]), "the user's own file");
}

#[test]
fn session_without_a_context_does_not_have_it() {
    let home = guarded();
    for flags in [&[][..], &["--session", "s1"], &["--isolate", "home"], &["--tool", "gh"]] {
        assert_eq!(run(&home, flags, CONTEXTS).ok().stdout(), "dev\nstaging\n", "{flags:?}");
        assert_withheld(&run(&home, flags, SHOW).ok().stdout());
    }
    home.write(".config/sessile/config.toml", "[tools]\nexcept = [\"kubectl\"]\n");
    assert_eq!(run(&home, &[], CONTEXTS).ok().stdout(), "dev\nstaging\n");
}

#[test]
fn home_in_a_room_does_not_have_it_at_the_usual_place_either() {
    let home = guarded();
    home.write("elsewhere", clusters(&["dev", "production"]));
    let elsewhere = home.path("elsewhere");
    let show = ["sh", "-c", "cat \"$HOME/.kube/config\" \"$KUBECONFIG\""];
    for (name, size) in [("small", 1), ("large", 9_000_000)] {
        home.write(".kube/cache/blob", vec![b'x'; size]);
        let flags = ["--session", name, "--isolate", "home"];
        let copies = run(&home, &flags, &show).env("KUBECONFIG", &elsewhere).ok().stdout();
        assert_withheld(&copies);
    }
}

#[test]
fn home_that_was_made_before_the_context_loses_it_too() {
    let home = guarded();
    let path = ".config/sessile/contexts/production.toml";
    let production = home.read(path);
    std::fs::remove_file(home.path(path)).unwrap();
    home.write("elsewhere", clusters(&["dev", "production"]));
    home.write(".kube/cache/blob", vec![b'x'; 9_000_000]);
    let elsewhere = home.path("elsewhere");
    let show = ["sh", "-c", "cat \"$HOME/.kube/config\" \"$KUBECONFIG\""];
    let flags = ["--session", "s1", "--isolate", "home"];
    let copies = run(&home, &flags, &show).env("KUBECONFIG", &elsewhere).ok().stdout();
    assert!(copies.contains("t-production"), "{copies}");
    home.write(path, production);
    assert_withheld(&run(&home, &flags, &show).env("KUBECONFIG", &elsewhere).ok().stdout());
    assert!(home.read(".kube/config").contains("t-production"), "the user's own file");
}

#[test]
fn alias_is_withheld_by_its_identity() {
    let home = guarded();
    let alias = "- name: prod-alias\n  context: {cluster: c-alias, user: u-alias}\n";
    let text = clusters(&["staging", "production"])
        .replace(
            "clusters:\n",
            "clusters:\n- name: c-alias\n  cluster: {server: 'HTTPS://PRODUCTION.example.invalid:443/'}\n",
        )
        .replace("users:\n", "users:\n- name: u-alias\n  user: {token: t-production}\n");
    home.write(".kube/config", text + alias);
    assert_eq!(run(&home, &[], CONTEXTS).ok().stdout(), "staging\n");
    let copy = run(&home, &[], SHOW).ok().stdout();
    assert!(!copy.contains("alias") && !copy.contains("t-production"), "{copy}");
}

#[test]
fn repeated_keys_hide_no_target() {
    let home = guarded();
    let text = clusters(&["staging", "production"])
        .replace("- name: production\n", "- name: al\n  name: production\n")
        .replace(
            "clusters:\n",
            "clusters:\n- name: c-alias\n  cluster: {server: 'https://staging.example.invalid', server: 'https://production.example.invalid'}\n",
        )
        + "- name: alias\n  context: {cluster: c-alias, user: u-production}\n";
    home.write(".kube/config", text);
    for name in ["production", "alias"] {
        let command = ["kubectl", "--context", name, "config", "view", "--raw", "--minify"];
        let told = run(&home, &[], &command).run().told();
        assert!(!told.contains("t-production"), "{name}: {told}");
    }
    assert_withheld(&run(&home, &[], SHOW).ok().stdout());
}

#[test]
fn merge_keys_hide_no_target() {
    let home = guarded();
    let text = clusters(&["staging", "production"])
        .replace("cluster: {server: 'https://production", "cluster: &c {server: 'https://production")
        .replace(
            "users:\n",
            "- name: c-alias\n  cluster: {<<: *c, insecure-skip-tls-verify: true}\nusers:\n",
        );
    home.write(".kube/config", text + "- name: alias\n  context: {cluster: c-alias, user: u-production}\n");
    for name in ["production", "alias"] {
        let command = ["kubectl", "--context", name, "config", "view", "--raw", "--minify"];
        let told = run(&home, &[], &command).run().told();
        assert!(!told.contains("t-production"), "{name}: {told}");
    }
    assert_withheld(&run(&home, &[], SHOW).ok().stdout());
    // The entry of the protected target itself has a merge key.
    let text = clusters(&["staging", "production"])
        .replace("context: {cluster: c-production, ", "context: {<<: [{cluster: c-production}], ");
    home.write(
        ".kube/config",
        text + "- name: alias\n  context: {cluster: c-production, user: u-production}\n",
    );
    assert_withheld(&run(&home, &[], SHOW).ok().stdout());
    let create = ["context", "create", "al", "--bind", "kubectl.context=alias", "-ojson"];
    let done = home.call(&create).run().exit(7);
    assert_eq!(done.code(), "GUARD_APPROVAL", "{}", done.told());
}

#[test]
fn alias_made_in_a_session_is_removed_at_the_next_run() {
    let home = guarded();
    let flags = ["--session", "s1", "--context", "staging"];
    run(&home, &flags, &["true"]).ok();
    let make = "kubectl config set-cluster c --server=https://production.example.invalid && \
                kubectl config set-credentials u --token=t-production && \
                kubectl config set-context mine --cluster=c --user=u && \
                kubectl config set-context kind --cluster=kind --user=kind";
    run(&home, &flags, &["sh", "-c", make]).ok();
    assert_eq!(run(&home, &flags, CONTEXTS).ok().stdout(), "kind\nstaging\n");
    assert_withheld(&run(&home, &flags, SHOW).ok().stdout());
}

#[test]
fn session_that_is_prepared_loses_what_becomes_protected() {
    let home = guarded();
    let path = ".config/sessile/contexts/production.toml";
    let production = home.read(path);
    home.write(path, production.replace("approval", "none"));
    let flags = ["--session", "s1"];
    assert_eq!(run(&home, &flags, CONTEXTS).ok().stdout(), "dev\nproduction\nstaging\n");
    home.write(path, production);
    assert_eq!(run(&home, &flags, CONTEXTS).ok().stdout(), "dev\nstaging\n");
}

#[test]
fn approved_session_has_it() {
    let home = guarded();
    run(&home, &["--context", "production"], CONTEXTS).run().exit(125);
    approve(&home, "production");
    assert_eq!(run(&home, &["--context", "production"], CONTEXTS).ok().stdout(), "production\n");
    let flags = ["--context", "production", "--session", "p"];
    assert_eq!(run(&home, &flags, &["kubectl", "config", "current-context"]).ok().stdout(), "production\n");
    assert_eq!(run(&home, &["--context", "staging"], CONTEXTS).ok().stdout(), "staging\n");
    assert_eq!(
        run(&home, &[], CONTEXTS).ok().stdout(),
        "dev\nstaging\n",
        "an approval opens its context alone"
    );
}

#[test]
fn target_of_an_unguarded_context_is_shared() {
    let home = guarded();
    home.write(
        ".config/sessile/contexts/also.toml",
        "[tools.kubectl]\ncontext = [\"dev\", \"production\"]\n",
    );
    assert_eq!(run(&home, &[], CONTEXTS).ok().stdout(), "dev\nproduction\nstaging\n");
    assert_eq!(run(&home, &["--context", "also"], CONTEXTS).ok().stdout(), "dev\nproduction\n");
}

#[test]
fn contexts_of_a_project_change_nothing() {
    let home = guarded();
    home.write("p/.sessile/contexts/free.toml", "[tools.kubectl]\ncontext = \"production\"\n");
    home.write("p/.sessile/contexts/shut.toml", "guard = \"explicit\"\n[tools.kubectl]\ncontext = \"dev\"\n");
    let (text, status) = home.shell().run("cd p && sessile trust --yes");
    assert_eq!(status, 0, "{text}");
    assert_eq!(run(&home, &[], CONTEXTS).cwd("p").ok().stdout(), "dev\nstaging\n");
    let error = run(&home, &["--context", "free", "-ojson"], CONTEXTS).cwd("p").run().exit(125).json_error();
    assert_eq!(error["code"], "PROTECTED_TARGET", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("\"production\" is protected by context \"production\""), "{error}");
}

#[test]
fn context_file_that_cannot_be_read_fails_closed() {
    let home = guarded();
    home.write(".config/sessile/contexts/production.toml", "guard = \"approval\"\n[tools.kubectl\n");
    run(&home, &[], CONTEXTS).run().exit(125);
    home.write(".config/sessile/contexts/production.toml", "[tools.kubectl\n");
    run(&home, &[], CONTEXTS).ok();
}

/// The protected targets of the file are unknown then, so no context may be opened.
#[test]
fn unreadable_context_file_blocks_bindings_of_targets() {
    let home = guarded();
    let path = ".config/sessile/contexts/production.toml";
    home.write(path, "guard = \"approval\"\n[tools.kubectl\n");
    let create = ["context", "create", "free", "--bind", "kubectl.context=production"];
    home.call(&create).run().exit(1);
    let edit = ["context", "edit", "staging", "--bind", "kubectl.context=production"];
    home.call(&edit).run().exit(1);
    assert!(!home.path(".config/sessile/contexts/free.toml").exists());
    home.write(path, "guard = \"approval\"\n[tools.kubectl]\ncontext = \"production\"\n");
    home.call(&["context", "edit", "staging", "--description", "x"]).ok();
}

mod own_selection {
    use super::*;

    fn production_selected() -> Home {
        let home = guarded();
        home.write(".kube/config", clusters(&["production", "staging", "dev"]));
        home
    }

    #[test]
    fn tool_does_not_start() {
        let home = production_selected();
        let call = run(&home, &[], &["kubectl", "config", "current-context"]);
        insta::assert_snapshot!(call.run().exit(125).told(), @r#"
        exit 125
        --- stdout
        --- stderr
        error: kubectl's current context "production" is protected by context "production"
        hint: pass --context NAME for another target; or pass --context production, after `sessile context approve production` if its guard is approval
        "#);
        let error = run(&home, &["-ojson"], &["kubectl", "get", "pods"]).run().exit(125).json_error();
        assert_eq!(error["code"], "PROTECTED_TARGET");
        assert_eq!(error["context"], "production");
        run(&home, &["-ojson", "--session", "s1"], &["true"]).ok();
        for program in ["kubectl", "helm", "/usr/bin/kubectx"] {
            let done = run(&home, &["-ojson", "--session", "s1"], &[program, "version"]).run().exit(125);
            assert_eq!(done.code(), "PROTECTED_TARGET", "{program}: also in a prepared session");
        }
        run(&home, &["--context", "staging"], &["kubectl", "config", "current-context"]).ok();
    }

    #[test]
    fn other_command_starts_without_a_selection_and_hears_so_once() {
        let home = production_selected();
        let flags = ["--session", "s1"];
        let command = ["sh", "-c", "kubectl config current-context; true"];
        let done = run(&home, &flags, &command).ok();
        assert!(
            done.stderr().contains(
                "kubectl's current context \"production\" is protected by context \"production\"; the session starts without it"
            ),
            "{}",
            done.told()
        );
        assert!(done.stderr().contains("current-context is not set"), "{}", done.told());
        let again = run(&home, &flags, &command).ok();
        assert!(!again.stderr().contains("protected"), "{}", again.told());
        run(&home, &flags, &["sh", "-c", "kubectl config use-context dev"]).ok();
        let current = run(&home, &flags, &["kubectl", "config", "current-context"]).ok();
        assert_eq!(current.stdout(), "dev\n", "the session's own selection");
    }

    #[test]
    fn variable_that_names_it_is_cleared() {
        let home = home();
        home.write(".aws/config", "[profile dev]\nregion = x\n[profile production]\nrole_arn = arn:aws:iam::2:role/p\nsource_profile = dev\n");
        home.write(".aws/credentials", "[dev]\naws_access_key_id = D\naws_secret_access_key = D\n[root]\naws_access_key_id = R\naws_secret_access_key = R\n");
        let context = "guard = \"explicit\"\n[tools.aws]\nprofile = [\"production\", \"root\"]\n";
        home.write(".config/sessile/contexts/production.toml", context);
        let show = ["sh", "-c", "echo \"${AWS_PROFILE-}|${AWS_ACCESS_KEY_ID-}|${AWS_SECRET_ACCESS_KEY-}\""];
        let with = |pairs: &[(&str, &str)], command: &[&str]| {
            pairs.iter().fold(run(&home, &[], command), |call, (name, value)| call.env(name, value))
        };
        let done = with(&[("AWS_PROFILE", "production")], &show).ok();
        assert_eq!(done.stdout(), "||\n");
        assert!(
            done.stderr().contains("aws's current profile \"production\" is protected"),
            "{}",
            done.told()
        );
        let keys = [("AWS_ACCESS_KEY_ID", "R"), ("AWS_SECRET_ACCESS_KEY", "R")];
        assert_eq!(with(&keys, &show).ok().stdout(), "||\n", "the keys of a protected profile");
        let keys = [("AWS_ACCESS_KEY_ID", "D"), ("AWS_SECRET_ACCESS_KEY", "D"), ("AWS_PROFILE", "dev")];
        assert_eq!(with(&keys, &show).ok().stdout(), "dev|D|D\n");
        let done =
            with(&[("AWS_PROFILE", "production"), ("SESSILE_OUTPUT", "json")], &["aws", "s3", "ls"]).run();
        assert_eq!(done.exit(125).code(), "PROTECTED_TARGET");
    }
}

#[test]
fn aws_profile_is_withheld_with_its_alias() {
    testkit::require_tool("aws");
    let home = home();
    home.write(
        ".aws/config",
        "[default]\nregion = us-east-1\n[profile staging]\nrole_arn = arn:aws:iam::1:role/s\nsource_profile = base\n\
         [profile production]\nrole_arn = arn:aws:iam::2:role/p\nsource_profile = base\n\
         [profile alias]\nrole_arn = arn:aws:iam::2:role/p\nsource_profile = base\n\
         [profile sso-production]\nsso_session = corp\nsso_account_id = 2\nsso_role_name = admin\n\
         [profile sso-alias]\nsso_session = other\nsso_account_id = 2\nsso_role_name = admin\n\
         [sso-session corp]\nsso_region = eu-west-1\n[sso-session other]\nsso_region = eu-west-2\n",
    );
    home.write(".aws/credentials", "[base]\naws_access_key_id = B\naws_secret_access_key = B\n");
    let production = "guard = \"approval\"\n[tools.aws]\nprofile = [\"production\", \"sso-production\"]\n";
    home.write(".config/sessile/contexts/production.toml", production);
    home.write(".config/sessile/contexts/staging.toml", "[tools.aws]\nprofile = \"staging\"\n");
    for flags in [&["--context", "staging", "--set", "tools.aws.strict=false"][..], &[]] {
        let done = run(&home, flags, &["aws", "--profile", "production", "s3", "ls"]).run();
        assert!(done.stderr().contains("(production) could not be found"), "{}", done.told());
        let copy = run(&home, flags, &["sh", "-c", "cat \"$AWS_CONFIG_FILE\""]).ok().stdout();
        for gone in ["production", "alias", "sso-session"] {
            assert!(!copy.contains(gone), "{gone}: {copy}");
        }
        assert!(copy.contains("profile staging") && copy.contains("[default]"), "{copy}");
    }
}

/// The tool reads a title that is deeper than the option before it as a part of that option.
#[test]
fn aws_keys_below_a_title_in_an_option_are_withheld() {
    testkit::require_tool("aws");
    let home = home();
    let credentials = "[staging]\naws_access_key_id = S\naws_secret_access_key = S\n\
                       [production]\nregion = x\n  [other]\naws_access_key_id = GO\naws_secret_access_key = GO\n";
    home.write(".aws/credentials", credentials);
    let context = "guard = \"explicit\"\n[tools.aws]\nprofile = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    let key = ["configure", "get", "aws_access_key_id", "--profile", "production"];
    assert_eq!(home.tool("aws", &key).ok().stdout(), "GO\n", "the tool itself reads it so");
    let copy = run(&home, &[], &["sh", "-c", "cat \"$AWS_SHARED_CREDENTIALS_FILE\""]).ok().stdout();
    assert!(!copy.contains("GO") && copy.contains("= S"), "{copy}");
    for profile in ["staging", "production", "other"] {
        let command = format!("aws configure get aws_access_key_id --profile {profile}; true");
        let done = run(&home, &[], &["sh", "-c", &command]).ok();
        assert!(!done.told().contains("GO"), "{profile}: {}", done.told());
    }
}

#[test]
fn kube_server_is_known_in_every_spelling() {
    let home = guarded();
    for server in [
        "https://production.example.invalid:0443",
        "https://production.example.invalid.:443",
        "https://production.example.invalid/?",
        "https://PRODUCTION.example.invalid:443/?x=1#y",
        "https://production.example.invalid.//",
        "PRODUCTION.example.invalid",
        "production.example.invalid.:0443/",
        " https://u@production.example.invalid:443 ",
    ] {
        let user = "users: [{name: u, user: {token: t-production}}]";
        let text = format!(
            "{}\ncontexts: [{{name: alias, context: {{cluster: c, user: u}}}}]\nclusters: [{{name: c, cluster: {{server: '{server}'}}}}]\n{user}\n",
            "apiVersion: v1\nkind: Config"
        );
        home.write("other.yaml", text);
        let files = format!("{}:{}", home.path(".kube/config").display(), home.path("other.yaml").display());
        let list =
            run(&home, &[], &["sh", "-c", "kubectl config get-contexts -o name"]).env("KUBECONFIG", &files);
        assert_eq!(list.ok().stdout(), "dev\nstaging\n", "{server}");
    }
}

/// A session may remove what names an entry, and the entry stays.
#[test]
fn docker_context_without_a_name_in_its_file_is_withheld() {
    testkit::require_tool("docker");
    let home = home();
    home.tool(
        "docker",
        &["context", "create", "production", "--docker", "host=tcp://p.example.invalid:2376"],
    )
    .ok();
    let meta =
        std::fs::read_dir(home.path(".docker/contexts/meta")).unwrap().flatten().next().unwrap().path();
    std::fs::write(
        meta.join("meta.json"),
        "{\"Endpoints\":{\"docker\":{\"Host\":\"tcp://p2.example.invalid:2376\"}}}",
    )
    .unwrap();
    let context = "guard = \"explicit\"\n[tools.docker]\ncontext = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    let done = run(&home, &[], &["sh", "-c", "docker --context production version"]).run();
    assert!(!done.told().contains("p2.example.invalid"), "{}", done.told());
    let done =
        run(&home, &["--context", "production"], &["sh", "-c", "docker --context production version"]).run();
    assert!(done.told().contains("p2.example.invalid"), "{}", done.told());
}

#[test]
fn gh_account_is_withheld_with_its_token() {
    let home = home();
    home.write(
        ".config/gh/hosts.yml",
        "github.com:\n    user: admin\n    oauth_token: gho_admin\n    git_protocol: https\n    users:\n        admin:\n            \
         oauth_token: gho_admin\n        bot:\n            oauth_token: gho_bot\n",
    );
    home.write(
        ".config/sessile/contexts/production.toml",
        "guard = \"explicit\"\n[tools.gh]\nuser = \"admin\"\n",
    );
    let copy =
        run(&home, &["--session", "s1"], &["sh", "-c", "cat \"$GH_CONFIG_DIR/hosts.yml\""]).ok().stdout();
    assert!(!copy.contains("admin") && copy.contains("gho_bot"), "{copy}");
    let done = run(&home, &["-ojson"], &["gh", "auth", "token"]).run().exit(125);
    assert_eq!(done.code(), "PROTECTED_TARGET");
    let other = run(&home, &["--session", "s1"], &["sh", "-c", "gh auth token --user bot"]).ok();
    assert_eq!(other.stdout(), "gho_bot\n");
    run(&home, &["--session", "s1"], &["sh", "-c", "gh auth token --user admin"]).run().exit(1);
    let done = run(&home, &["--context", "production"], &["gh", "auth", "token"]).ok();
    assert_eq!(done.stdout(), "gho_admin\n");
}

#[test]
fn gh_token_of_a_protected_account_is_withheld() {
    let home = home();
    let users = "    users:\n        release:\n            oauth_token: gho_release\n        ann:\n            oauth_token: gho_ann\n";
    for (own, wanted) in [("gho_release", ""), ("gho_ann", "gho_ann\n")] {
        home.write(
            ".config/gh/hosts.yml",
            format!("github.com:\n{users}    user: ann\n    oauth_token: {own}\n"),
        );
        home.write(
            ".config/sessile/contexts/production.toml",
            "guard = \"approval\"\n[tools.gh]\nhost = \"github.com\"\nuser = \"release\"\n",
        );
        let done = run(&home, &[], &["gh", "auth", "token"]).run();
        assert_eq!(done.stdout(), wanted, "{}", done.told());
        let copy = run(&home, &[], &["sh", "-c", "cat \"$GH_CONFIG_DIR/hosts.yml\""]).ok().stdout();
        assert!(!copy.contains("release") && copy.contains("gho_ann"), "{copy}");
    }
}

#[test]
fn docker_context_is_withheld_with_its_alias_and_host() {
    testkit::require_tool("docker");
    let home = home();
    for (name, host) in [("staging", "staging"), ("production", "production"), ("alias", "production")] {
        let endpoint = format!("host=tcp://{host}.example.invalid:2376");
        home.tool("docker", &["context", "create", name, "--docker", &endpoint]).ok();
    }
    let context = "guard = \"explicit\"\n[tools.docker]\ncontext = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    let list = ["docker", "context", "ls", "--format", "{{.Name}}"];
    assert_eq!(run(&home, &[], &list).ok().stdout(), "default\nstaging\n");
    let show = ["sh", "-c", "echo \"${DOCKER_HOST-none}\""];
    let call = run(&home, &[], &show).env("DOCKER_HOST", "tcp://PRODUCTION.example.invalid:2376");
    assert_eq!(call.ok().stdout(), "none\n");
    let call = run(&home, &[], &show).env("DOCKER_HOST", "tcp://other.example.invalid:2376");
    assert_eq!(call.ok().stdout(), "tcp://other.example.invalid:2376\n");
    home.tool("docker", &["context", "use", "alias"]).ok();
    assert_eq!(run(&home, &["-ojson"], &list).run().exit(125).code(), "PROTECTED_TARGET");
    let done = run(&home, &[], &["sh", "-c", "docker ps"]).run();
    assert!(!done.stderr().contains("production.example.invalid"), "{}", done.told());
}

/// docker reads the keys of its files in any case, and finds a context by its directory.
#[test]
fn docker_alias_is_withheld_in_every_case_of_its_keys() {
    testkit::require_tool("docker");
    for (text, shown) in [
        (
            "{\"name\":\"alias\",\"endpoints\":{\"docker\":{\"HOST\":\"tcp://p.example.invalid:2376\"}}}",
            "alias",
        ),
        (
            "{\"NAME\":\"alias\",\"EndPoints\":{\"docker\":{\"Host\":\"x\",\"host\":\"tcp://P.example.invalid:02376\"}}}",
            "alias",
        ),
        ("{\"endPoints\":{\"docker\":{\"host\":\"tcp://p.example.invalid:2376\"}}}", ""),
    ] {
        let home = home();
        for (name, host) in [("staging", "s"), ("production", "p"), ("alias", "a")] {
            let endpoint = format!("host=tcp://{host}.example.invalid:2376");
            home.tool("docker", &["context", "create", name, "--docker", &endpoint]).ok();
        }
        let metas: Vec<_> =
            std::fs::read_dir(home.path(".docker/contexts/meta")).unwrap().flatten().collect();
        let mut meta = metas.iter().map(|entry| entry.path().join("meta.json"));
        let alias = meta.find(|path| std::fs::read_to_string(path).unwrap().contains("a.example"));
        std::fs::write(alias.unwrap(), text).unwrap();
        let list = ["docker", "context", "ls", "--format", "{{.Name}}={{.DockerEndpoint}}"];
        let before = home.tool("docker", &list[1..]).ok().stdout().to_lowercase();
        assert_eq!(before.matches("=tcp://p.example").count(), 2, "docker reads {text}: {before}");
        assert!(before.contains(&format!("{shown}=tcp://p.example")), "{before}");
        let context = "guard = \"explicit\"\n[tools.docker]\ncontext = \"production\"\n";
        home.write(".config/sessile/contexts/production.toml", context);
        let held = run(&home, &[], &list).ok().stdout();
        assert!(!held.to_lowercase().contains("p.example") && held.contains("s.example"), "{text}: {held}");
        let done = run(&home, &[], &["sh", "-c", "docker --context alias version"]).run();
        assert!(!done.told().to_lowercase().contains("p.example"), "{text}: {}", done.told());
    }
}

#[test]
fn docker_selection_is_known_in_every_case_of_its_key() {
    testkit::require_tool("docker");
    let home = home();
    let endpoint = "host=tcp://p.example.invalid:2376";
    home.tool("docker", &["context", "create", "production", "--docker", endpoint]).ok();
    home.write(".docker/config.json", "{\"currentcontext\":\"production\"}");
    let show = ["docker", "context", "show"];
    assert_eq!(home.tool("docker", &show[1..]).ok().stdout(), "production\n");
    let context = "guard = \"explicit\"\n[tools.docker]\ncontext = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    assert_eq!(run(&home, &["-ojson"], &show).run().exit(125).code(), "PROTECTED_TARGET");
}

/// A list of servers reaches each of them, but is another target than one of them.
#[test]
fn psql_service_of_several_hosts_does_not_share_one_of_them() {
    let home = home();
    home.write(
        ".pg_service.conf",
        "[production]\nhost=p.example\ndbname=d\nuser=u\n[staging]\nhost=s.example\ndbname=d\nuser=u\n\
         [list]\nhost=s.example,P.example\nport=5432,5432\ndbname=d\nuser=u\n\
         [address]\nhost=s.example\nhostaddr=p.example\ndbname=d\nuser=u\n\
         [same]\nhost=P.example.\nport=5432\ndbname=d\nuser=u\n",
    );
    let context = |name: &str, guard: &str, service: &str| {
        let text = format!("{guard}[tools.psql]\nservice = \"{service}\"\n");
        home.write(format!(".config/sessile/contexts/{name}.toml"), text);
    };
    context("production", "guard = \"explicit\"\n", "production");
    let show = || home.call(&["context", "show", "production", "-ojson"]).ok().json();
    for service in ["list", "address"] {
        context("other", "", service);
        assert_eq!(show()["shared"], serde_json::json!([]), "{service}");
        assert_eq!(show()["protected"][0]["name"], "production", "{service}");
        let done = run(&home, &["--context", "other", "-ojson"], &["true"]).run().exit(125);
        assert_eq!(done.code(), "PROTECTED_TARGET", "{service}: {}", done.told());
        let held = run(&home, &[], &["sh", "-c", "cat \"$PGSERVICEFILE\""]).ok().stdout();
        assert!(held.contains("[staging]") && !held.to_lowercase().contains("p.example"), "{held}");
    }
    context("other", "", "same");
    assert_eq!(show()["shared"][0]["shared_with"], serde_json::json!(["other"]));
    // A guarded list protects each of its servers.
    context("production", "guard = \"explicit\"\n", "list");
    let done = run(&home, &["--context", "other", "-ojson"], &["true"]).run().exit(125);
    assert_eq!(done.code(), "PROTECTED_TARGET", "{}", done.told());
}

/// A user that impersonates another has the same key, but is another target.
#[test]
fn kube_user_with_the_same_key_does_not_share_a_target() {
    let home = home();
    let server = "{server: 'https://p.example.invalid'}";
    let text = format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: p, cluster: {server}}}]\n\
         users: [{{name: admin, user: {{token: t}}}}, {{name: viewer, user: {{token: t, as: viewer}}}}]\n\
         contexts: [{{name: production, context: {{cluster: p, user: admin}}}}, {{name: view, context: {{cluster: p, user: viewer}}}}]\n"
    );
    home.write(".kube/config", text);
    for (name, guard, target) in [("production", "explicit", "production"), ("view", "none", "view")] {
        let text = format!("guard = \"{guard}\"\n[tools.kubectl]\ncontext = \"{target}\"\n");
        home.write(format!(".config/sessile/contexts/{name}.toml"), text);
    }
    let show = home.call(&["context", "show", "production", "-ojson"]).ok().json();
    assert_eq!(show["shared"], serde_json::json!([]));
    let done = run(&home, &["--context", "view", "-ojson"], &["true"]).run().exit(125);
    assert_eq!(done.code(), "PROTECTED_TARGET", "{}", done.told());
}

mod everywhere {
    use super::*;

    #[test]
    fn shell_and_env_withhold_it() {
        let home = guarded();
        let call = home.call(&["shell", "--shell", "/bin/sh"]).with_tools();
        let done = call.stdin("kubectl config get-contexts -o name\n").ok();
        assert_eq!(done.stdout(), "dev\nstaging\n");
        home.call(&["session", "start", "--name", "s1"]).ok();
        let json = home.call(&["env", "--session", "s1", "--shell", "json"]).ok().json();
        let copy = std::fs::read_to_string(json["set"]["KUBECONFIG"].as_str().unwrap()).unwrap();
        assert_withheld(&copy);
        assert_eq!(
            std::path::Path::new(json["set"]["KUBECONFIG"].as_str().unwrap()),
            room(&home, "s1").join("kube/config")
        );
    }

    #[test]
    fn mcp_run_withholds_it() {
        let home = guarded();
        let mut client = testkit::McpClient::start(home.call(&["mcp", "--allow-run"]).with_tools());
        client.initialize("2025-11-25");
        for context in [None, Some("staging")] {
            let mut arguments = serde_json::json!({ "command": SHOW });
            if let Some(context) = context {
                arguments["context"] = context.into();
            }
            let text = client.call("run", arguments).to_string();
            assert!(text.contains("t-staging") && !text.contains("production"), "{text}");
        }
    }
}

mod reports {
    use super::*;

    #[test]
    fn context_show_lists_protected_and_shared_targets() {
        let home = guarded();
        home.write(
            ".config/sessile/contexts/production.toml",
            "guard = \"approval\"\n[tools.kubectl]\ncontext = [\"production\", \"dev\"]\n[tools.docker]\ncontext = \"default\"\n\
             [tools.terraform]\nworkspace = \"production\"\n",
        );
        home.write(".config/sessile/contexts/dev.toml", "[tools.kubectl]\ncontext = \"dev\"\n");
        let text = home.call(&["context", "show", "production"]).ok().stdout();
        for line in [
            "  protected    kubectl context \"production\"\n",
            "  shared       kubectl context \"dev\", also bound by unguarded dev\n",
            "  unprotected  docker: the context default has no entry in a file\n",
            "  unprotected  terraform: workspaces: their state is in the project or in its backend\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        let json = home.call(&["context", "show", "production", "-ojson"]).ok().json();
        assert_eq!(json["protected"][0]["name"], "production");
        assert_eq!(json["shared"][0]["shared_with"], serde_json::json!(["dev"]));
        let json = home.call(&["context", "show", "dev", "-ojson"]).ok().json();
        assert_eq!(json["shared"][0]["contexts"], serde_json::json!(["production"]));
    }

    #[test]
    fn status_lists_protected_targets() {
        let home = guarded();
        let text = home.call(&["status"]).ok().stdout();
        assert!(text.contains("protected kubectl context \"production\"\n"), "{text}");
        let json = home.call(&["status", "-ojson"]).ok().json();
        assert_eq!(json["protected"][0]["contexts"], serde_json::json!(["production"]));
    }

    #[test]
    fn dry_run_and_verbose_name_what_is_withheld() {
        let home = guarded();
        let text = run(&home, &["--dry-run"], &["true"]).ok().stdout();
        let line = "withheld  kubectl context production, protected by context production\n";
        assert!(text.starts_with("context   none\nsession   "), "{text}");
        assert!(text.contains(line) && !text.contains("VARIABLE"), "{text}");
        let json = run(&home, &["--dry-run", "-ojson"], &["true"]).ok().json();
        assert_eq!(json["withheld"][0]["name"], "production");
        let done = run(&home, &["-v"], &["true"]).ok();
        let line = "withheld kubectl context production, protected by context production";
        assert!(done.stderr().contains(line), "{}", done.told());
    }
}
