//! Strict rooms: a session's copies hold only the targets that its context binds, and what these refer to.

use testkit::{Call, Home};

use crate::isolation::run::kubeconfig;
use crate::{home, room};

pub(super) fn run(home: &Home, command: &[&str]) -> Call {
    home.call(&["run", "--session", "s1", "--context", "c", "--"]).args(command).with_tools()
}

pub(super) fn bound(toml: &str) -> Home {
    let home = home();
    home.write(".config/sessile/contexts/c.toml", toml);
    home
}

const CONTEXTS: &[&str] = &["kubectl", "config", "get-contexts", "-o", "name"];

#[test]
fn kubectl_cannot_switch_to_a_context_that_is_not_bound() {
    let home = bound("[tools.kubectl]\ncontext = \"staging\"\n");
    home.write(".kube/config", kubeconfig(&["dev", "staging", "production"]));
    assert_eq!(run(&home, CONTEXTS).ok().stdout(), "staging\n");
    let switched = "kubectl config use-context production; kubectl config current-context";
    let done = run(&home, &["sh", "-c", switched]).ok();
    assert_eq!(done.stdout(), "staging\n");
    let done = run(&home, &["kubectl", "--context", "production", "get", "pods"]).run().exit(1);
    assert!(
        done.stderr().contains("context was not found for specified context: production"),
        "{}",
        done.told()
    );
    let copy = run(&home, &["sh", "-c", "cat \"$KUBECONFIG\""]).ok().stdout();
    assert!(!copy.contains("production"), "neither its cluster nor its user: {copy}");
}

#[test]
fn context_that_the_session_made_itself_stays() {
    let home = bound("[tools.kubectl]\ncontext = \"staging\"\n");
    home.write(".kube/config", kubeconfig(&["staging", "production"]));
    run(&home, &["kubectl", "config", "set-context", "kind-test", "--cluster=kind", "--user=kind"]).ok();
    run(&home, &["kubectl", "config", "use-context", "kind-test"]).ok();
    assert_eq!(run(&home, CONTEXTS).ok().stdout(), "kind-test\nstaging\n");
    let current = run(&home, &["kubectl", "config", "current-context"]).ok().stdout();
    assert_eq!(current, "staging\n", "the bound one is selected again");
}

#[test]
fn own_context_of_a_session_survives_a_changed_binding() {
    let home = bound("[tools.kubectl]\ncontext = \"staging\"\n");
    home.write(".kube/config", kubeconfig(&["staging", "production"]));
    run(&home, &["kubectl", "config", "set-context", "kind-test", "--cluster=kind", "--user=kind"]).ok();
    home.write(
        ".config/sessile/contexts/c.toml",
        "[tools.kubectl]\ncontext = \"staging\"\nnamespace = \"web\"\n",
    );
    assert_eq!(run(&home, CONTEXTS).ok().stdout(), "kind-test\nstaging\n");
}

#[test]
fn call_that_keeps_other_targets_does_not_speak_for_the_next() {
    let home = bound("[tools.kubectl]\ncontext = \"staging\"\n");
    home.write(".kube/config", kubeconfig(&["staging", "production"]));
    let call =
        home.call(&["run", "--session", "s1", "--context", "c", "--set", "tools.kubectl.strict=false", "--"]);
    assert_eq!(call.args(CONTEXTS).with_tools().ok().stdout(), "production\nstaging\n");
    assert_eq!(run(&home, CONTEXTS).ok().stdout(), "staging\n");
}

#[test]
fn several_bound_targets_are_kept_and_the_first_is_selected() {
    let home = bound("[tools.kubectl]\ncontext = [\"staging\", \"staging-eu\"]\n");
    home.write(".kube/config", kubeconfig(&["production", "staging-eu", "staging"]));
    assert_eq!(run(&home, CONTEXTS).ok().stdout(), "staging\nstaging-eu\n");
    assert_eq!(run(&home, &["kubectl", "config", "current-context"]).ok().stdout(), "staging\n");
    let home = bound("[tools.kubectl]\ncontext = [\"staging\", \"nosuch\"]\n");
    home.write(".kube/config", kubeconfig(&["production", "staging"]));
    let done = run(&home, CONTEXTS).run().exit(125);
    assert!(done.stderr().contains("\"nosuch\""), "{}", done.told());
    for wrong in ["context = []", "context = [\"\"]", "context = [\"staging\"]\nnamespace = [\"a\"]"] {
        let home = bound(&format!("[tools.kubectl]\n{wrong}\n"));
        home.write(".kube/config", kubeconfig(&["staging"]));
        run(&home, CONTEXTS).run().exit(125);
    }
}

#[test]
fn strict_can_be_turned_off_by_the_context_or_for_a_call() {
    let home = bound("[tools.kubectl]\ncontext = \"staging\"\nstrict = false\n");
    home.write(".kube/config", kubeconfig(&["staging", "production"]));
    assert_eq!(run(&home, CONTEXTS).ok().stdout(), "production\nstaging\n");
    let home = bound("[tools.kubectl]\ncontext = \"staging\"\n");
    home.write(".kube/config", kubeconfig(&["staging", "production"]));
    let call = home.call(&["run", "--context", "c", "--set", "tools.kubectl.strict=false", "--"]);
    assert_eq!(call.args(CONTEXTS).with_tools().ok().stdout(), "production\nstaging\n");
    let call = home.call(&["run", "--context", "c", "--"]);
    assert_eq!(call.args(CONTEXTS).with_tools().ok().stdout(), "staging\n");
}

#[test]
fn changed_binding_is_copied_again() {
    let home = bound("[tools.kubectl]\ncontext = \"staging\"\n");
    home.write(".kube/config", kubeconfig(&["dev", "staging", "production"]));
    assert_eq!(run(&home, CONTEXTS).ok().stdout(), "staging\n");
    home.write(".config/sessile/contexts/c.toml", "[tools.kubectl]\ncontext = \"dev\"\n");
    assert_eq!(run(&home, CONTEXTS).ok().stdout(), "dev\n");
}

#[test]
fn aws_keeps_the_profile_and_its_dependencies() {
    testkit::require_tool("aws");
    let home = bound("[tools.aws]\nprofile = \"staging\"\n");
    home.write(
        ".aws/config",
        "[default]\nregion = us-east-1\n\n[profile staging]\nrole_arn = arn:aws:iam::1:role/s\nsource_profile = base\n\n\
         [profile base]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = dev\n\n\
         [sso-session corp]\nsso_region = eu-west-1\n\n[sso-session other]\nsso_region = eu-west-2\n\n\
         [profile\tproduction]\nrole_arn = arn:aws:iam::2:role/p\nsource_profile = root\n\n[profile root]\nregion = x\n",
    );
    home.write(
        ".aws/credentials",
        "[base]\naws_access_key_id = B\naws_secret_access_key = B\n[root]\naws_access_key_id = R\naws_secret_access_key = R\n\
         [production]\naws_access_key_id = P\naws_secret_access_key = P\n",
    );
    let session = run(&home, &["aws", "configure", "get", "sso_session", "--profile", "base"]).ok().stdout();
    assert_eq!(session, "corp\n");
    let done = run(&home, &["aws", "--profile", "production", "s3", "ls"]).run();
    assert!(done.stderr().contains("(production) could not be found"), "{}", done.told());
    let copies =
        run(&home, &["sh", "-c", "cat \"$AWS_CONFIG_FILE\" \"$AWS_SHARED_CREDENTIALS_FILE\""]).ok().stdout();
    assert!(copies.contains("[sso-session corp]") && copies.contains("aws_access_key_id = B"), "{copies}");
    for gone in ["production", "root", "sso-session other", "[default]"] {
        assert!(!copies.contains(gone), "{gone}: {copies}");
    }
}

#[test]
fn gh_keeps_the_host_and_the_user() {
    let home = bound("[tools.gh]\nuser = \"bot\"\n");
    home.write(
        ".config/gh/hosts.yml",
        "github.com:\n    user: admin\n    oauth_token: gho_admin\n    git_protocol: https\n    users:\n        admin:\n            \
         oauth_token: gho_admin\n        bot:\n            oauth_token: gho_bot\nghe.example.com:\n    user: root\n    \
         oauth_token: gho_root\n    users:\n        root:\n            oauth_token: gho_root\n",
    );
    assert_eq!(run(&home, &["gh", "auth", "token"]).ok().stdout(), "gho_bot\n");
    run(&home, &["gh", "auth", "switch", "--user", "admin"]).run().exit(1);
    run(&home, &["gh", "auth", "token", "--hostname", "ghe.example.com"]).run().exit(1);
    let copy = run(&home, &["sh", "-c", "cat \"$GH_CONFIG_DIR/hosts.yml\""]).ok().stdout();
    assert!(!copy.contains("gho_admin") && !copy.contains("gho_root"), "{copy}");
    assert!(copy.contains("git_protocol"), "{copy}");
}

#[test]
fn backups_in_a_directory_are_not_copied() {
    let home = bound("[tools.gh]\nuser = \"bot\"\n");
    let hosts = "github.com:\n    users:\n        bot:\n            oauth_token: gho_bot\n";
    home.write(".config/gh/hosts.yml", hosts);
    let backups = [
        "hosts.yml.bak",
        "hosts.yml~",
        ".hosts.yml.swp",
        "hosts.yml.orig",
        "#hosts.yml#",
        "old/hosts.yml.bak",
    ];
    for name in backups {
        home.write(format!(".config/gh/{name}"), "oauth_token: gho_admin\n");
    }
    home.write(".config/gh/config.yml", "editor: vim\n");
    let held = run(&home, &["sh", "-c", "cat $(find \"$GH_CONFIG_DIR\" -type f)"]).ok().stdout();
    assert!(held.contains("gho_bot") && held.contains("vim"), "{held}");
    assert!(!held.contains("gho_admin"), "{held}");
}

#[test]
fn docker_keeps_the_context_and_its_keys() {
    testkit::require_tool("docker");
    let home = bound("[tools.docker]\ncontext = \"staging\"\n");
    for name in ["staging", "production"] {
        let endpoint = format!("host=tcp://{name}.example.invalid:2376");
        home.tool("docker", &["context", "create", name, "--docker", &endpoint]).ok();
    }
    home.tool("docker", &["context", "use", "production"]).ok();
    let told = run(&home, &["docker", "context", "ls", "--format", "{{.Name}}"]).ok().stdout();
    assert_eq!(told, "default\nstaging\n");
    let done = run(&home, &["docker", "--context", "production", "ps"]).run().exit(1);
    assert!(done.stderr().contains("production"), "{}", done.told());
    let done = run(&home, &["docker", "ps"]).run();
    assert!(done.stderr().contains("staging.example.invalid"), "{}", done.told());
}

#[test]
fn gcloud_keeps_the_configuration_and_its_account() {
    let home = bound("[tools.gcloud]\nconfiguration = \"staging\"\n");
    for (name, account) in [("staging", "dev@example.com"), ("production", "admin@example.com")] {
        let text = format!("[core]\naccount = {account}\nproject = {name}-1\n");
        home.write(format!(".config/gcloud/configurations/config_{name}"), text);
        home.write(format!(".config/gcloud/legacy_credentials/{account}/adc.json"), "{}");
    }
    home.write(".config/gcloud/active_config", "production");
    let make = "import sqlite3\nfor file, table in (('credentials', 'credentials'), ('access_tokens', 'access_tokens')):\n \
                db = sqlite3.connect(f'.config/gcloud/{file}.db')\n \
                db.execute(f'CREATE TABLE {table} (account_id TEXT PRIMARY KEY, value BLOB)')\n \
                db.executemany(f'INSERT INTO {table} VALUES (?, ?)', [('dev@example.com', 'v-dev'), ('admin@example.com', 'v-admin')])\n \
                db.commit()\n";
    home.tool("python3", &["-c", make]).ok();
    run(&home, &["true"]).ok();
    let dir = room(&home, "s1").join("gcloud");
    let names = |path: &str| -> Vec<String> {
        let entries = std::fs::read_dir(dir.join(path)).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert_eq!(names("configurations"), ["config_staging"]);
    assert_eq!(names("legacy_credentials"), ["dev@example.com"]);
    for file in ["credentials.db", "access_tokens.db"] {
        let bytes = std::fs::read(dir.join(file)).unwrap();
        let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(holds("v-dev"), "{file}");
        assert!(!holds("v-admin") && !holds("admin@example.com"), "{file}: also not in free pages");
    }
}
