//! `sessile import` beyond the targets that rooms copy: identities, hosts, files of other switchers, agents and their
//! conversations, variables of directories, and credentials in clear text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use testkit::Home;

use crate::home;

fn kubeconfig(context: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters: [{{name: {context}, cluster: {{server: 'https://{context}.invalid'}}}}]\n\
         users: [{{name: {context}, user: {{token: t-{context}}}}}]\n\
         contexts: [{{name: {context}, context: {{cluster: {context}, user: {context}}}}}]\n"
    )
}

fn import(home: &Home) -> String {
    home.call(&["import", "--yes"]).ok().stdout()
}

fn assert_nothing_new(home: &Home) {
    let told = import(home);
    assert!(told.contains("nothing new"), "{told}");
}

fn context(home: &Home, name: &str) -> Value {
    home.call(&["context", "show", name, "-ojson"]).ok().json()
}

fn scanned(home: &Home) -> Vec<Value> {
    home.call(&["import", "scan", "-ojson"]).ok().json().as_array().unwrap().clone()
}

#[test]
fn git_identities_of_directories_are_imported_and_obeyed() {
    let home = home();
    home.write(
        ".gitconfig",
        "[user]\n\tname = Bob\n\temail = bob@home.example\n\
         [includeIf \"gitdir:~/work/\"]\n\tpath = .gitconfig-work\n\
         [includeIf \"gitdir:~/gone/\"]\n\tpath = ~/.missing\n\
         [user \"Oss\"]\n\temail = bob@oss.example\n",
    );
    home.write(".gitconfig-work", "[user]\n\temail = bob@corp.example ; mine\n\tsigningKey = ABCD\n");
    import(&home);
    let work = context(&home, "work");
    assert_eq!(work["tools"]["git"]["email"], "bob@corp.example");
    assert_eq!(work["tools"]["git"]["signer"], "ABCD");
    assert_eq!(context(&home, "oss")["tools"]["git"]["email"], "bob@oss.example");
    let git = |context: &str, args: &[&str]| {
        home.call(&["run", "--context", context, "--", "git"]).args(args).with_tools().ok().stdout()
    };
    assert_eq!(git("work", &["config", "user.email"]), "bob@corp.example\n");
    assert_eq!(git("work", &["config", "user.name"]), "Bob\n");
    assert_eq!(git("work", &["config", "user.signingkey"]), "ABCD\n");
    assert_eq!(git("oss", &["config", "--global", "user.email"]), "bob@oss.example\n");
    assert_nothing_new(&home);
}

#[test]
fn bound_identity_wins_over_an_include_of_the_directory() {
    let home = home();
    home.write(".gitconfig", "[user]\n\temail = own@x\n[includeIf \"gitdir:~/p/\"]\n\tpath = ~/.inc\n");
    home.write(".inc", "[user]\n\temail = included@x\n");
    home.tool("git", &["init", "--quiet", "p"]).ok();
    let run = ["run", "--bind", "git.email=bound@x", "--", "git", "config", "user.email"];
    assert_eq!(home.call(&run).cwd("p").with_tools().ok().stdout(), "bound@x\n");
    assert_eq!(home.tool("git", &["config", "user.email"]).cwd("p").ok().stdout(), "included@x\n");
}

#[test]
fn npm_registries_are_imported_with_and_without_a_token() {
    let home = home();
    home.write(
        ".npmrc",
        "registry=https://npm.staging.example/\n//npm.staging.example/:_authToken=t1\n\
         //npm.prod.example/:_authToken=t2\n@corp:registry=https://npm.prod.example/\n",
    );
    import(&home);
    let names: Vec<Value> = scanned(&home).into_iter().filter(|one| one["type"] == "target").collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(context(&home, "staging")["tools"]["npm"]["registry"], "https://npm.staging.example/");
    assert_eq!(context(&home, "production")["guard"], "approval");
    // In the home npm would read the user's own file as that of a project.
    home.write("app/package.json", "{}");
    let run = ["run", "--context", "staging", "--", "npm", "config", "get", "registry"];
    assert_eq!(home.call(&run).with_tools().cwd("app").ok().stdout(), "https://npm.staging.example/\n");
    assert_nothing_new(&home);
}

#[test]
fn ssh_hosts_join_contexts_and_make_none() {
    let home = home();
    home.write(".kube/config", kubeconfig("staging"));
    home.write(
        ".ssh/config",
        "Host stg-bastion\n  HostName 192.0.2.1\nHost prod-1 prod-2 *.corp\n  User x\n# Host none\n",
    );
    import(&home);
    assert_eq!(context(&home, "staging")["tools"]["ssh"]["host"], "stg-bastion");
    home.call(&["context", "show", "production"]).run().exit(5);
    let hosts: Vec<Value> = scanned(&home).into_iter().filter(|one| one["tool"] == "ssh").collect();
    assert_eq!(hosts.len(), 3, "{hosts:?}");
    let run = ["run", "--context", "staging", "--", "sh", "-c", "echo $SSH_HOST"];
    assert_eq!(home.call(&run).ok().stdout(), "stg-bastion\n");
    assert_nothing_new(&home);
}

#[test]
fn kubie_contexts_are_imported_with_their_file() {
    let home = home();
    home.write(".kube/config", kubeconfig("dev"));
    home.write(".kube/clusters/prod.kubeconfig", kubeconfig("prod"));
    home.write(".kube/configs/staging.yaml", kubeconfig("staging"));
    home.write(".kube/kubie.yaml", "configs:\n  include:\n  - ~/.kube/clusters/*.kubeconfig\nprompt: {}\n");
    home.write(".kube/kubectx", "dev");
    import(&home);
    let staging = context(&home, "staging");
    assert_eq!(staging["tools"]["kubectl"]["kubeconfig"], "~/.kube/configs/staging.yaml");
    let kubectl = |context: &str| {
        let run = [
            "run",
            "--context",
            context,
            "--",
            "kubectl",
            "config",
            "view",
            "--raw",
            "-o",
            "jsonpath={.contexts[*].name} {.users[*].user.token}",
        ];
        home.call(&run).with_tools().ok().stdout()
    };
    assert_eq!(kubectl("staging"), "staging t-staging");
    assert_eq!(kubectl("dev"), "dev t-dev");
    let production = context(&home, "production");
    assert_eq!(production["guard"], "approval");
    assert_eq!(production["tools"]["kubectl"]["kubeconfig"], "~/.kube/clusters/prod.kubeconfig");
    // An alias of the guarded target in the usual file is withheld: the identity is read from the bound file.
    let alias = kubeconfig("prod").replace("contexts: [{name: prod", "contexts: [{name: alias");
    home.write(".kube/config", alias);
    let listed =
        home.call(&["run", "--", "kubectl", "config", "get-contexts", "-o", "name"]).with_tools().run();
    assert!(!listed.stdout().contains("alias"), "{}", listed.told());
    home.write(".kube/config", kubeconfig("dev"));
    let recent: Vec<Value> = scanned(&home).into_iter().filter(|one| one["recent"] == true).collect();
    assert_eq!(recent.len(), 1, "{recent:?}");
    assert_eq!(recent[0]["name"], "dev");
    assert_nothing_new(&home);
}

/// A home with both layouts of Handler.
fn home_of_handler() -> Home {
    let home = home();
    home.write(
        ".handler/sessions.json",
        r#"{"http://localhost:8000": {"context_id": "ctx-old", "task_id": "task-1",
            "credentials": {"auth_type": "bearer", "value": "bearer-s3cret", "header_name": null}},
           "https://api.example.com": {"context_id": "ctx-42", "task_id": null,
            "credentials": {"auth_type": "api_key", "value": "key-s3cret", "header_name": "X-Key"}}}"#,
    );
    home.write(
        ".local/share/handler/sessions.json",
        r#"{"http://localhost:8000": {"context_id": "ctx-new", "task_id": null, "last_used_at": "2026-11-01T00:00:00+00:00"},
           "http://localhost:9000": {"context_id": null, "task_id": null, "last_used_at": null}}"#,
    );
    home.write(
        ".config/handler/servers.toml",
        "version = 1\n[servers.research]\nurl = \"https://agent.example\"\n\
         [servers.research.auth]\ntype = \"bearer\"\nvalue = \"server-s3cret\"\n\
         [servers.local]\nurl = \"http://localhost:8000\"\n[servers.local.auth]\ntype = \"bearer\"\nenv = \"TOKEN\"\n",
    );
    home
}

#[test]
fn handler_data_is_imported_from_both_layouts() {
    let home = home_of_handler();
    let before =
        [".handler/sessions.json", ".local/share/handler/sessions.json", ".config/handler/servers.toml"]
            .map(|file| home.read(file));
    let done = home.call(&["import", "--yes"]).ok();
    let told = done.stdout();
    assert!(told.contains("added agent \"research\": https://agent.example"), "{told}");
    assert!(told.contains("added 3 conversations to session \"handler\""), "{told}");
    assert!(done.stderr().contains("3 credentials in clear text"), "{}", done.told());
    let agents = home.call(&["agent", "list", "-ojson"]).ok().json();
    assert_eq!(agents.as_array().unwrap().len(), 2, "{agents}");
    let conversations = home.call(&["conversation", "list", "--session", "handler", "-ojson"]).ok().json();
    let mut ids: Vec<&str> =
        conversations.as_array().unwrap().iter().map(|one| one["context_id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["ctx-42", "ctx-new", "ctx-old"]);
    assert!(home.call(&["auth", "list", "-ojson"]).ok().json().as_array().unwrap().is_empty());
    // The credentials stay on offer, and nothing else is new.
    let again = home.call(&["import", "--yes"]).ok();
    assert!(again.stdout().contains("nothing new"), "{}", again.told());
    assert!(again.stderr().contains("--credentials"), "{}", again.told());
    let after =
        [".handler/sessions.json", ".local/share/handler/sessions.json", ".config/handler/servers.toml"]
            .map(|file| home.read(file));
    assert_eq!(after, before);
}

#[test]
fn credentials_in_clear_text_go_to_the_vault_only_with_the_flag() {
    let home = home_of_handler();
    home.write(".npmrc", "//registry.example/:_authToken=npm-s3cret\nregistry=https://registry.example/\n");
    home.write(
        ".notte/cli/config.json",
        r#"{"api_key": "notte-s3cret", "api_url": "https://stg.notte.example"}"#,
    );
    let done = home.call(&["import", "--yes", "--credentials", "-ojson"]).ok();
    assert!(!done.told().contains("s3cret"), "{}", done.told());
    assert_eq!(
        credential_names(&home),
        [
            "agent.example",
            "api.example.com",
            "localhost-8000",
            "notte-https-stg.notte.example",
            "npm-registry.example"
        ]
    );
    let key = home.call(&["auth", "show", "api.example.com", "-ojson"]).ok().json();
    assert_eq!((&key["kind"], &key["header"]), (&Value::from("api-key"), &Value::from("X-Key")), "{key}");
    assert_eq!(key["agents"][0], "https://api.example.com");
    assert_eq!(context(&home, "staging")["tools"]["notte"]["api-url"], "https://stg.notte.example");
    // They are the same secrets.
    home.call(&["context", "create", "c", "--env-credential", "T=npm-registry.example"]).ok();
    let run = ["run", "--context", "c", "--", "sh", "-c", "echo $T"];
    assert_eq!(home.call(&run).ok().stdout(), "npm-s3cret\n");
    let again = home.call(&["import", "--yes", "--credentials"]).ok().stdout();
    assert!(again.contains("nothing new"), "{again}");
}

#[test]
fn person_marks_the_credentials_to_copy() {
    let home = home_of_handler();
    home.write(".kube/config", kubeconfig("staging"));
    let mut terminal = home.call(&["import"]).env("TERM", "xterm").tty();
    terminal.expect("Contexts to create");
    terminal.expect("esc cancels");
    terminal.type_line("");
    terminal.expect("Credentials to copy to the vault");
    terminal.expect("esc cancels");
    // Marks the first.
    terminal.type_line(" ");
    let (text, status) = terminal.finish();
    assert_eq!(status, 0, "{text}");
    assert!(!text.contains("s3cret"), "{text}");
    let listed = home.call(&["auth", "list", "-ojson"]).ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{text}");
    assert!(home.path(".config/sessile/contexts/staging.toml").exists(), "{text}");
}

#[test]
fn variables_that_direnv_may_load_become_a_context() {
    let home = home();
    home.write(".aws/config", "[profile staging]\nregion = x\n");
    let envrc = "export AWS_PROFILE=staging\nexport STAGE=\"two words\"\nexport API_TOKEN='t0k-s3cret'\n\
                 export KUBECONFIG=$PWD/kube\nlayout python\n";
    home.write("shop/.envrc", envrc);
    let run = |args: &[&str]| home.call(args).cwd("shop");
    let told = run(&["import", "--dry-run", "-ojson"]).ok().stdout();
    assert!(!told.contains("STAGE"), "direnv was not told to load it: {told}");
    home.tool("direnv", &["allow", "."]).cwd("shop").ok();
    run(&["import", "--yes", "--credentials"]).ok();
    let staging = context(&home, "staging");
    assert_eq!(staging["tools"]["aws"]["profile"], "staging", "{staging}");
    assert_eq!(staging["env"]["STAGE"], "two words", "{staging}");
    assert_eq!(staging["env"]["API_TOKEN"]["credential"], "shop-api_token", "{staging}");
    assert!(!staging.to_string().contains("s3cret"), "{staging}");
    let shell = ["run", "--context", "staging", "--", "sh", "-c", "echo $AWS_PROFILE-$STAGE-$API_TOKEN"];
    assert_eq!(home.call(&shell).ok().stdout(), "staging-two words-t0k-s3cret\n");
    assert!(run(&["import", "--yes"]).ok().stdout().contains("nothing new"));
    assert_eq!(home.read("shop/.envrc"), envrc);
}

#[test]
fn user_profile_imports_a_file_in_the_home() {
    let home = home();
    home.write(".acmerc", "[stg]\nendpoint = a\n[Prod]\nendpoint = b\n");
    home.write(
        ".config/sessile/tools/acme.toml",
        "name = \"acme\"\nabout = \"acme\"\nprograms = [\"acme\"]\n\
         [variables]\nACME_RC = \"{room}/acme/rc\"\n\
         [[seed]]\nfrom = \"{home}/.acmerc\"\nto = \"acme/rc\"\n\
         [bind.profile]\nabout = \"the profile\"\nvariables = { ACME_PROFILE = \"{value}\" }\n\
         [[target]]\nname = \"profile\"\nfile = \"acme/rc\"\nformat = \"ini\"\nentries = \"{}\"\n",
    );
    import(&home);
    assert_eq!(context(&home, "staging")["tools"]["acme"]["profile"], "stg");
    assert_eq!(context(&home, "production")["guard"], "approval");
    let run = ["run", "--context", "staging", "--", "sh", "-c", "echo $ACME_PROFILE; cat $ACME_RC"];
    assert_eq!(home.call(&run).ok().stdout(), "stg\n[stg]\nendpoint = a\n");
    assert_nothing_new(&home);
}

#[test]
fn tokens_and_keys_of_targets_are_offered_to_the_vault() {
    let home = home();
    home.write(".kube/config", kubeconfig("dev"));
    home.write(
        ".aws/credentials",
        "[dev]\naws_access_key_id = AKIADEV\naws_secret_access_key = aws-s3cret\n[sso]\nregion = x\n",
    );
    let done = home.call(&["import", "--yes", "--credentials"]).ok();
    assert!(!done.told().contains("s3cret") && !done.told().contains("t-dev"), "{}", done.told());
    assert_eq!(credential_names(&home), ["aws-dev", "kubectl-dev"]);
    assert!(home.read(".aws/credentials").contains("aws-s3cret"), "the tools' files stay");
}

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

/// The names of the credentials in the vault, sorted.
fn credential_names(home: &Home) -> Vec<String> {
    let listed = home.call(&["auth", "list", "-ojson"]).ok().json();
    let mut names: Vec<String> =
        listed.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect();
    names.sort_unstable();
    names
}

#[test]
fn logins_at_registries_are_offered_to_the_vault() {
    let home = home();
    home.write(
        ".docker/config.json",
        format!(
            r#"{{"auths": {{"https://index.docker.example/v1/": {{"auth": "{}"}}, "ghcr.example": {{"auth": "{}",
            "identitytoken": "id-s3cret"}}, "helper.example": {{}}, "broken.example": {{"auth": "%%%"}}}},
            "credHelpers": {{"helper.example": "pass"}}}}"#,
            base64("bot:hub-s3cret:with colon"),
            base64("<token>:"),
        ),
    );
    home.write(
        ".npmrc",
        format!("//npm.example/:_auth={}\n//env.example/:_authToken=${{TOKEN}}\n", base64("ci:npm-s3cret")),
    );
    home.write(
        ".cargo/credentials.toml",
        "[registry]\ntoken = \"a-s3cret\"\n[registries.own]\ntoken = \"b-s3cret\"\n",
    );
    home.write(
        ".pypirc",
        "[distutils]\nindex-servers = own\n[own]\nusername = __token__\npassword = p-s3cret\n",
    );
    home.write(
        ".terraform.d/credentials.tfrc.json",
        r#"{"credentials": {"tf.example": {"token": "t-s3cret"}}}"#,
    );
    let before = home.read(".docker/config.json");
    let done = home.call(&["import", "--yes", "--credentials"]).ok();
    assert!(!done.told().contains("s3cret"), "{}", done.told());
    assert_eq!(
        credential_names(&home),
        [
            "cargo-own",
            "cargo-registry",
            "docker-ghcr.example",
            "docker-https-index.docker.example-v1",
            "npm-npm.example",
            "terraform-tf.example",
            "twine-own",
        ]
    );
    let hub = home.call(&["auth", "show", "docker-https-index.docker.example-v1", "-ojson"]).ok().json();
    assert_eq!((&hub["kind"], &hub["username"]), (&Value::from("basic"), &Value::from("bot")), "{hub}");
    let create = ["context", "create", "c", "--env-credential", "T=docker-https-index.docker.example-v1"];
    home.call(&create).ok();
    let printed = home.call(&["run", "--context", "c", "--", "sh", "-c", "echo $T"]).ok().stdout();
    assert!(printed.contains("hub-s3cret:with colon"), "{printed}");
    assert_eq!(home.read(".docker/config.json"), before, "the tools' files stay");
    let again = home.call(&["import", "--yes", "--credentials"]).ok().stdout();
    assert!(again.contains("nothing new"), "{again}");
}

#[test]
fn tokens_of_all_users_of_a_host_are_offered_to_the_vault() {
    let home = home();
    let hosts = "github.com:\n    users:\n        bot:\n            oauth_token: bot-s3cret\n        me:\n            \
                 oauth_token: me-s3cret\n    oauth_token: me-s3cret\n    user: me\nghe.example:\n    users:\n        \
                 bot:\n            oauth_token: ghe-s3cret\n    oauth_token: ghe-s3cret\n    user: bot\n";
    home.write(".config/gh/hosts.yml", hosts);
    let done = home.call(&["import", "--yes", "--credentials"]).ok();
    assert!(!done.told().contains("s3cret"), "{}", done.told());
    // The token of the active user is the host's.
    assert_eq!(credential_names(&home), ["gh-ghe.example", "gh-github.com", "gh-github.com-bot"]);
}

#[test]
fn secrets_in_files_of_variables_are_offered_to_the_vault() {
    let home = home();
    home.write("kube/one", kubeconfig("dev"));
    home.write("kube/two", kubeconfig("stg"));
    home.write("keys", "[dev]\naws_access_key_id = AKIADEV\naws_secret_access_key = aws-s3cret\n");
    home.write(
        "docker/config.json",
        format!(r#"{{"auths": {{"r.example": {{"auth": "{}"}}}}}}"#, base64("bot:hub-s3cret")),
    );
    home.call(&["import", "--yes", "--credentials"])
        .env("KUBECONFIG", format!("{}:{}", home.path("kube/one").display(), home.path("kube/two").display()))
        .env("AWS_SHARED_CREDENTIALS_FILE", home.path("keys"))
        .env("DOCKER_CONFIG", home.path("docker"))
        .ok();
    assert_eq!(credential_names(&home), ["aws-dev", "docker-r.example", "kubectl-dev", "kubectl-stg"]);
}
