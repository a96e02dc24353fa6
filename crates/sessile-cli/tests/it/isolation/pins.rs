//! What a context binds is what the tools see: at every run, whatever the commands before did.

use testkit::{Call, Home};

use crate::isolation::run::kubeconfig;
use crate::{home, room};

fn run(home: &Home, flags: &[&str], command: &[&str]) -> Call {
    home.call(&["run"]).args(flags).args(&["--"]).args(command).with_tools()
}

/// A home with one context.
fn bound(toml: &str) -> Home {
    let home = home();
    home.write(".config/sessile/contexts/c.toml", toml);
    home
}

const IN_S1: &[&str] = &["--session", "s1", "--context", "c"];

mod kubectl {
    use super::*;

    const CURRENT: &[&str] = &["kubectl", "config", "current-context"];

    #[test]
    fn switched_context_and_namespace_are_pinned_again() {
        let home = bound("[tools.kubectl]\ncontext = \"staging\"\nnamespace = \"web\"\n");
        home.write(".kube/config", kubeconfig(&["dev", "staging", "prod"]));
        let before = home.tree_of_people();
        let both = "kubectl config current-context; kubectl config view --minify -o jsonpath={..namespace}";
        assert_eq!(run(&home, IN_S1, &["sh", "-c", both]).ok().stdout(), "staging\nweb");
        let switch = "kubectl config set-context own && kubectl config use-context own && kubectl config current-context";
        let told = run(&home, IN_S1, &["sh", "-c", switch]).ok().stdout();
        assert!(told.ends_with("own\n"), "the copy is the session's to change: {told}");
        run(&home, IN_S1, &["kubectl", "config", "set-context", "staging", "--namespace=other"]).ok();
        assert_eq!(run(&home, IN_S1, &["sh", "-c", both]).ok().stdout(), "staging\nweb");
        assert_eq!(home.tree_of_people(), before);
    }

    #[test]
    fn a_context_that_was_changed_meanwhile_holds_at_the_next_run() {
        let home = bound("[tools.kubectl]\ncontext = \"staging\"\n");
        home.write(".kube/config", kubeconfig(&["dev", "staging", "prod"]));
        assert_eq!(run(&home, IN_S1, CURRENT).ok().stdout(), "staging\n");
        home.write(".config/sessile/contexts/c.toml", "[tools.kubectl]\ncontext = \"prod\"\n");
        assert_eq!(run(&home, IN_S1, CURRENT).ok().stdout(), "prod\n");
    }

    #[test]
    fn damaged_copy_is_copied_again() {
        for spoil in [
            "kubectl config delete-context staging",
            "rm \"$KUBECONFIG\"",
            "echo '{{{' > \"$KUBECONFIG\"",
            "ln -sf ~/elsewhere \"$KUBECONFIG\"",
        ] {
            let home = bound("[tools.kubectl]\ncontext = \"staging\"\n");
            home.write(".kube/config", kubeconfig(&["dev", "staging"]));
            home.write("elsewhere", kubeconfig(&["dev", "prod"]));
            let before = home.tree_of_people();
            run(&home, IN_S1, &["sh", "-c", spoil]).ok();
            let done = run(&home, IN_S1, CURRENT).ok();
            assert_eq!(done.stdout(), "staging\n", "{spoil}");
            assert!(done.stderr().contains("copied the state again"), "{spoil}: {}", done.stderr());
            assert_eq!(home.tree_of_people(), before, "{spoil}");
        }
    }

    #[test]
    fn deleted_kube_context_is_an_error() {
        let home = bound("[tools.kubectl]\ncontext = \"staging\"\n");
        home.write(".kube/config", kubeconfig(&["dev", "staging"]));
        run(&home, IN_S1, &["kubectl", "config", "delete-context", "staging"]).ok();
        home.write(".kube/config", kubeconfig(&["dev"]));
        let done = run(&home, IN_S1, CURRENT).run().exit(125);
        assert!(done.stderr().contains("\"staging\" not found in"), "{}", done.told());
    }
}

mod aws {
    use super::*;

    #[test]
    fn profile_and_region_are_pinned_over_variables() {
        let home = bound("[tools.aws]\nprofile = \"staging\"\nregion = \"eu-central-1\"\n");
        home.write(".aws/config", "[default]\nregion = us-east-1\n[profile staging]\nregion = us-west-2\n");
        home.write(
            ".aws/credentials",
            "[default]\naws_access_key_id = D\naws_secret_access_key = D\n\
             [staging]\naws_access_key_id = STAGING\naws_secret_access_key = S\n",
        );
        let call = run(&home, IN_S1, &["env"]);
        let told = call
            .env("AWS_PROFILE", "prod")
            .env("AWS_ACCESS_KEY_ID", "PROD")
            .env("AWS_SECRET_ACCESS_KEY", "PROD")
            .env("AWS_SESSION_TOKEN", "PROD")
            .env("AWS_ENDPOINT_URL_S3", "http://prod")
            .env("AWS_DEFAULT_REGION", "prod")
            .ok()
            .stdout();
        let (own, others): (Vec<&str>, Vec<&str>) =
            told.lines().partition(|line| line.starts_with("SESSILE_ORIGINALS="));
        assert!(!others.join("\n").to_lowercase().contains("prod"), "{others:?}");
        assert!(!own.join("").contains("PROD"), "secrets are not carried along: {own:?}");
        for line in ["AWS_PROFILE=staging", "AWS_REGION=eu-central-1", "AWS_DEFAULT_REGION=eu-central-1"] {
            assert!(told.lines().any(|found| found == line), "{line}: {told}");
        }
        testkit::require_tool("aws");
        let told = run(&home, IN_S1, &["aws", "configure", "get", "aws_access_key_id"]).ok().stdout();
        assert_eq!(told, "STAGING\n");
    }

    #[test]
    fn without_a_binding_the_callers_keys_stay() {
        let home = home();
        let call = run(&home, &[], &["printenv", "AWS_ACCESS_KEY_ID", "AWS_PROFILE"]);
        let told = call.env("AWS_ACCESS_KEY_ID", "MINE").env("AWS_PROFILE", "p").ok().stdout();
        assert_eq!(told, "MINE\np\n");
    }

    #[test]
    fn variable_of_keep_env_is_kept() {
        let home = bound("[tools.aws]\nprofile = \"default\"\n");
        let flags = ["--context", "c", "--keep-env", "AWS_SESSION_TOKEN"];
        let call = run(&home, &flags, &["printenv", "AWS_SESSION_TOKEN"]);
        assert_eq!(call.env("AWS_SESSION_TOKEN", "kept").ok().stdout(), "kept\n");
    }
}

mod others {
    use super::*;

    #[test]
    fn a_docker_context_survives_a_switch_in_the_session() {
        let home = bound("[tools.docker]\ncontext = \"staging\"\nstrict = false\n");
        for name in ["staging", "prod"] {
            let host = format!("host=unix:///nonexistent/{name}.sock");
            home.tool("docker", &["context", "create", name, "--docker", &host]).ok();
        }
        let before = home.tree_of_people();
        let show = ["docker", "context", "inspect", "--format", "{{.Name}}"];
        assert_eq!(run(&home, IN_S1, &show).env("DOCKER_HOST", "unix:///x").ok().stdout(), "staging\n");
        run(&home, IN_S1, &["docker", "context", "use", "prod"]).ok();
        assert_eq!(run(&home, IN_S1, &show).ok().stdout(), "staging\n");
        assert_eq!(home.tree_of_people(), before);
    }

    #[test]
    fn a_gcloud_configuration_with_its_project() {
        let home = bound("[tools.gcloud]\nconfiguration = \"staging\"\nproject = \"p-1\"\n");
        home.write(".config/gcloud/configurations/config_staging", "[core]\naccount = a@example.invalid\n");
        home.write(".config/gcloud/configurations/config_default", "");
        home.write(".config/gcloud/active_config", "default");
        let script = "echo $CLOUDSDK_ACTIVE_CONFIG_NAME $CLOUDSDK_CORE_PROJECT $GOOGLE_CLOUD_PROJECT
            cat \"$CLOUDSDK_CONFIG/configurations/config_$CLOUDSDK_ACTIVE_CONFIG_NAME\"
            echo \"[$GOOGLE_APPLICATION_CREDENTIALS]\"";
        let call = run(&home, IN_S1, &["sh", "-c", script]);
        let told = call.env("GOOGLE_APPLICATION_CREDENTIALS", "/prod.json").ok().stdout();
        assert_eq!(told, "staging p-1 p-1\n[core]\naccount = a@example.invalid\n[]\n");
    }

    #[test]
    fn a_gh_user_comes_with_the_token_of_that_user() {
        let home = bound("[tools.gh]\nuser = \"bob\"\nstrict = false\n");
        let hosts = "github.com:\n    users:\n        alice:\n            oauth_token: gho_alice\n        \
            bob:\n            oauth_token: gho_bob\n    git_protocol: https\n    user: alice\n    \
            oauth_token: gho_alice\n";
        home.write(".config/gh/hosts.yml", hosts);
        home.write(".config/gh/config.yml", "version: \"1\"\n");
        let token = ["gh", "auth", "token"];
        assert_eq!(home.tool("gh", &["auth", "token"]).ok().stdout(), "gho_alice\n");
        assert_eq!(run(&home, IN_S1, &token).env("GH_TOKEN", "gho_prod").ok().stdout(), "gho_bob\n");
        run(&home, IN_S1, &["gh", "auth", "switch", "--user", "alice"]).ok();
        assert_eq!(run(&home, IN_S1, &token).ok().stdout(), "gho_bob\n");
        assert_eq!(home.read(".config/gh/hosts.yml"), hosts);
    }

    #[test]
    fn a_git_identity_is_in_every_commit() {
        let home = bound("[tools.git]\nname = \"Agent \\\"7\\\" Smith\"\nemail = \"a7@example.invalid\"\n");
        home.write(".gitconfig", "[user]\n\tname = me\n\temail = me@example.invalid\n");
        let script = "git init -q r && cd r && git config user.name other &&
            git commit -q --allow-empty -m x && git log --format='%an <%ae> %cn'";
        let told = run(&home, IN_S1, &["sh", "-c", script]).ok().stdout();
        assert_eq!(told, "Agent \"7\" Smith <a7@example.invalid> Agent \"7\" Smith\n");
    }

    #[test]
    fn a_terraform_workspace_and_an_npm_registry() {
        let home = bound("[tools.terraform]\nworkspace = \"w\"\n[tools.npm]\nregistry = \"http://r/\"\n");
        let told = run(&home, IN_S1, &["printenv", "TF_WORKSPACE", "NPM_CONFIG_REGISTRY"]).ok().stdout();
        assert_eq!(told, "w\nhttp://r/\n");
    }
}

mod wrong {
    use super::*;

    fn refused(toml: &str) -> serde_json::Value {
        let home = bound(toml);
        home.write(".kube/config", kubeconfig(&["dev"]));
        let done = run(&home, &["--context", "c", "-ojson"], &["touch", "it-ran"]).run().exit(125);
        assert!(!home.path("it-ran").exists());
        let mut error = done.json_error();
        let message = error["message"].as_str().unwrap().replace(&home.dir().display().to_string(), "~");
        error["message"] = message.into();
        error
    }

    #[test]
    fn missing_target_fails_early_and_names_the_users_file() {
        for (toml, value, file) in [
            ("[tools.kubectl]\ncontext = \"nope\"\n", "nope", "~/.kube/config"),
            ("[tools.aws]\nprofile = \"nope\"\n", "nope", "~/.aws/config"),
            ("[tools.docker]\ncontext = \"nope\"\n", "nope", "~/.docker"),
            ("[tools.gcloud]\nconfiguration = \"nope\"\n", "nope", "~/.config/gcloud"),
            ("[tools.gh]\nuser = \"nope\"\n", "nope", "~/.config/gh"),
        ] {
            let error = refused(toml);
            assert_eq!(error["code"], "BINDING_NOT_FOUND", "{error}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(value) && message.contains(file), "{message}");
            assert!(!message.contains("/rooms/"), "{message}");
        }
    }

    #[test]
    fn unknown_key_suggests_the_nearest() {
        let error = refused("[tools.kubectl]\ncontxt = \"dev\"\n");
        assert_eq!(error["code"], "BINDING_INVALID");
        assert!(error["message"].as_str().unwrap().contains("did you mean \"context\"?"), "{error}");
        let error = refused("[tools.kubectl]\nnamespace = \"web\"\n");
        assert!(error["message"].as_str().unwrap().contains("needs context"), "{error}");
    }

    #[test]
    fn value_of_the_wrong_type_is_reported() {
        for toml in [
            "[tools.kubectl]\ncontext = \"dev\"\nstrict = \"yes\"\n",
            "[tools.kubectl]\ncontext = true\n",
            "[tools.kubectl]\ncontext = \"\"\n",
        ] {
            let error = refused(toml);
            assert_eq!(error["code"], "BINDING_INVALID", "{toml}: {error}");
        }
        let error = refused("[tools.kubectl]\ncontext = [\"dev\", 1]\n");
        assert_eq!(error["code"], "FILE_VALUE", "{error}");
        assert!(error["message"].as_str().unwrap().contains("c.toml:2:1"), "{error}");
    }

    #[test]
    fn unknown_tool_suggests_the_nearest() {
        let error = refused("[tools.kubctl]\ncontext = \"dev\"\n");
        assert_eq!(error["code"], "TOOL_NOT_FOUND");
        assert!(error["hint"].as_str().unwrap().contains("kubectl"), "{error}");
    }

    /// What a value holds is text, not a path or a placeholder.
    #[test]
    fn a_hostile_value_stays_a_value() {
        let home = bound("[tools.docker]\ncontext = \"../../../../etc\"\n");
        run(&home, &["--context", "c"], &["true"]).run().exit(125);
        let home = bound("[tools.gcloud]\nconfiguration = \"x/../../../../../../../../../../etc/passwd\"\n");
        home.write(".config/gcloud/configurations/config_x/y", "");
        run(&home, &["--context", "c"], &["true"]).run().exit(125);
        let home = bound("[tools.kubectl]\ncontext = \"a]b.c[name={value}]\\n- x\"\n");
        let name = "a]b.c[name={value}]\n- x";
        home.write(".kube/config", kubeconfig(&["dev"]).replace("name: dev", &format!("name: {name:?}")));
        let told = run(&home, IN_S1, &["kubectl", "config", "current-context"]).ok().stdout();
        assert_eq!(told, format!("{name}\n"));
        assert!(room(&home, "s1").join("kube/config").exists());
    }
}
