//! Strict rooms of tools that are tried by their files.

use crate::isolation::file_case::FileCase;
use crate::isolation::strict::{bound, run};
use crate::room;
use testkit::Home;

const BY_FILES: &[FileCase] = &[
    FileCase {
        tool: "az",
        binding: "subscription = \"Staging\"",
        original: ".azure/azureProfile.json",
        copy: "azure/azureProfile.json",
        text: "\u{feff}{\"subscriptions\":[{\"id\":\"1\",\"name\":\"Staging\",\"isDefault\":false},{\"id\":\"2\",\"name\":\"Production\",\"isDefault\":true}]}",
        stays: &["Staging"],
        goes: &["Production"],
    },
    FileCase {
        tool: "npm",
        binding: "registry = \"https://npm.corp.example/team/\"",
        original: ".npmrc",
        copy: "npm/npmrc",
        text: "registry=https://public.example/\n@corp:registry=https://npm.corp.example/team/\n//npm.corp.example/:_authToken=KEEP1\n\
         //npm.corp.example/team/:_authToken=KEEP2\n//npm.corp.example/other/:_authToken=GO1\n//public.example/:_authToken=GO2\n\
         //public.example:_authToken=GO3\n\"//public.example/:_authToken\"=GO4\n//public.example:8080:_auth=GO5\n_auth=GO6\n",
        stays: &["KEEP1", "KEEP2", "@corp:registry=", "registry=https://public.example/"],
        goes: &["GO1", "GO2", "GO3", "GO4", "GO5", "GO6"],
    },
    FileCase {
        tool: "glab",
        binding: "host = \"gitlab.example.com\"",
        original: ".config/glab-cli/config.yml",
        copy: "glab/config.yml",
        text: "git_protocol: ssh\nhosts:\n    gitlab.example.com:\n        token: keep\n    gitlab.com:\n        token: gone\n",
        stays: &["keep", "git_protocol"],
        goes: &["gone"],
    },
    FileCase {
        tool: "doctl",
        binding: "context = \"staging\"",
        original: ".config/doctl/config.yaml",
        copy: "xdg/config/doctl/config.yaml",
        text: "context: production\nauth-contexts:\n    staging: keep\n    production: gone\n",
        stays: &["keep"],
        goes: &["gone"],
    },
    FileCase {
        tool: "argocd",
        binding: "context = \"staging\"",
        original: ".config/argocd/config",
        copy: "argocd/config",
        text: "current-context: production\ncontexts:\n- {name: staging, server: s.example, user: su}\n- {name: production, server: p.example, user: pu}\n\
         servers:\n- {server: s.example}\n- {server: p.example}\nusers:\n- {name: su, auth-token: keep}\n- {name: pu, auth-token: gone}\n",
        stays: &["s.example", "keep"],
        goes: &["p.example", "gone"],
    },
    FileCase {
        tool: "databricks",
        binding: "profile = \"staging\"",
        original: ".databrickscfg",
        copy: "databricks/cfg",
        text: "\u{feff}[production]\ntoken = gone\n[staging]\ntoken = keep\n[\tproduction ]\ntoken = gone\n",
        stays: &["keep"],
        goes: &["gone"],
    },
    FileCase {
        tool: "snow",
        binding: "connection = \"staging\"",
        original: ".snowflake/config.toml",
        copy: "snowflake/config.toml",
        text: "default_connection_name = \"x\"\n[cli.logs]\nlevel = \"info\"\n[connections.staging]\naccount = \"keep\"\n[connections.production]\naccount = \"gone\"\n",
        stays: &["keep", "cli.logs"],
        goes: &["gone"],
    },
    FileCase {
        tool: "hcloud",
        binding: "context = \"staging\"",
        original: ".config/hcloud/cli.toml",
        copy: "hcloud/cli.toml",
        text: "active_context = \"x\"\n[[contexts]]\nname = \"staging\"\ntoken = \"keep\"\n[[contexts]]\nname = \"production\"\ntoken = \"gone\"\n",
        stays: &["keep"],
        goes: &["gone"],
    },
    FileCase {
        tool: "psql",
        binding: "service = \"staging\"",
        original: ".pg_service.conf",
        copy: "pg/service.conf",
        text: "[staging]\nhost=s.example\n[production]\nhost=gone.example\n",
        stays: &["s.example"],
        goes: &["gone"],
    },
    FileCase {
        tool: "rclone",
        binding: "remote = \"staging\"",
        original: ".config/rclone/rclone.conf",
        copy: "rclone/rclone.conf",
        text: "[staging]\ntype = crypt\nremote = base:dir\n[base]\ntype = s3\nkey = keep\n[production]\ntype = s3\nkey = gone\n",
        stays: &["[staging]", "keep"],
        goes: &["gone"],
    },
    FileCase {
        tool: "hcloud",
        binding: "context = \"staging\"",
        original: ".config/hcloud/cli.toml",
        copy: "hcloud/cli.toml",
        text: "active_context = \"x\"\ncontexts = [{ name = \"staging\", token = \"keep\" }, { name = \"production\", token = \"gone\" }]\n",
        stays: &["keep"],
        goes: &["gone"],
    },
    FileCase {
        tool: "gh",
        binding: "host = \"ghe.example.com\"",
        original: ".config/gh/hosts.yml",
        copy: "gh/hosts.yml",
        text: "\"ghe.example.com\":\n    oauth_token: keep\n'github.com':\n    oauth_token: gone\n",
        stays: &["keep"],
        goes: &["gone"],
    },
    FileCase {
        tool: "gh",
        binding: "host = \"ghe.example.com\"",
        original: ".config/gh/hosts.yml",
        copy: "gh/hosts.yml",
        text: "{ghe.example.com: {oauth_token: keep}, github.com: {oauth_token: gone}}\n",
        stays: &["keep"],
        goes: &["gone"],
    },
    FileCase {
        tool: "snow",
        binding: "connection = \"staging\"",
        original: ".snowflake/config.toml",
        copy: "snowflake/config.toml",
        text: "[ connections.\"staging\" ]\naccount = \"keep\"\n[connections.production]\naccount = \"gone\"\n",
        stays: &["keep"],
        goes: &["gone"],
    },
    FileCase {
        tool: "linode-cli",
        binding: "user = \"staging\"",
        original: ".config/linode-cli",
        copy: "linode/cli",
        text: "[DEFAULT]\ndefault-user = production\n\n[production]\ntoken = gone\n[staging]\ntoken = keep\n",
        stays: &["keep", "[DEFAULT]\ndefault-user = staging\n"],
        goes: &["gone", "production"],
    },
    FileCase {
        tool: "dvc",
        binding: "remote = \"staging\"",
        original: ".config/dvc/config",
        copy: "dvc/config",
        text: "[core]\n    analytics = false\n    remote = production\n['remote \"staging\"']\n    url = s3://keep\n['remote \"production\"']\n    url = s3://gone\n",
        stays: &["keep", "analytics = false", "remote = staging"],
        goes: &["gone", "production"],
    },
    FileCase {
        tool: "hf",
        binding: "account = \"staging\"",
        original: ".cache/huggingface/stored_tokens",
        copy: "hf/stored_tokens",
        text: "[production]\nhf_token = hf_gone\n\n[staging]\nhf_token = hf_keep\n",
        stays: &["hf_keep"],
        goes: &["gone", "production"],
    },
    FileCase {
        tool: "poetry",
        binding: "repository = \"staging\"",
        original: ".config/pypoetry/auth.toml",
        copy: "poetry/auth.toml",
        text: "[http-basic.staging]\nusername = \"keep\"\n[http-basic.production]\nusername = \"gone\"\n[pypi-token]\nstaging = \"keep2\"\nproduction = \"gone2\"\n",
        stays: &["keep", "keep2"],
        goes: &["gone", "production"],
    },
    FileCase {
        tool: "poetry",
        binding: "repository = [\"staging\", \"pypi\"]",
        original: ".config/pypoetry/config.toml",
        copy: "poetry/config.toml",
        text: "virtualenvs.in-project = true\n[repositories.staging]\nurl = \"https://keep.example\"\n[repositories.production]\nurl = \"https://gone.example\"\n",
        stays: &["keep", "in-project"],
        goes: &["gone", "production"],
    },
    FileCase {
        tool: "s3cmd",
        binding: "account = \"STAGING\"",
        original: ".s3cfg",
        copy: "s3cmd/s3cfg",
        text: "[default]\naccess_key = STAGING\nsecret_key = keep\n[other]\naccess_key = PRODUCTION\nsecret_key = gone\n",
        stays: &["keep"],
        goes: &["gone", "PRODUCTION"],
    },
    FileCase {
        tool: "yarn",
        binding: "registry = \"https://npm.corp.example/\"",
        original: ".yarnrc.yml",
        copy: "home/.yarnrc.yml",
        text: "npmAuthToken: GO1\nnpmRegistryServer: https://public.example\nenableTelemetry: false\n\
               npmRegistries:\n  //npm.corp.example:\n    npmAuthToken: KEEP1\n  https://public.example/:\n    npmAuthToken: GO2\n    npmAlwaysAuth: true\n\
               npmScopes:\n  corp:\n    npmRegistryServer: https://npm.corp.example\n    npmAuthToken: KEEP2\n  \
               other:\n    npmRegistryServer: https://other.example\n    npmAuthIdent: GO3\n  bare:\n    npmAuthToken: GO4\n",
        stays: &[
            "KEEP1",
            "KEEP2",
            "https://other.example",
            "npmAlwaysAuth",
            "enableTelemetry",
            "npmRegistryServer: ",
        ],
        goes: &["GO1", "GO2", "GO3", "GO4"],
    },
    FileCase {
        tool: "mysql",
        binding: "group = \"staging\"",
        original: ".my.cnf",
        copy: "home/.my.cnf",
        text: "[client]\nssl-ca=ca.pem\nhost=gone\npass_word=x\nuser=me\n[client_staging]\nhost=keep\n[client_production]\nhost=gone\n[mysql_production]\nuser=gone\n[mysqld]\nquick=1\n",
        stays: &["host=keep", "[client]\nssl-ca=ca.pem\n", "user=me", "quick=1"],
        goes: &["gone", "production"],
    },
    FileCase {
        tool: "mysql",
        binding: "group = \"staging\"",
        original: ".mylogin.cnf",
        copy: "home/.mylogin.cnf",
        text: "obfuscated",
        stays: &[],
        goes: &["obfuscated"],
    },
    FileCase {
        tool: "vault",
        binding: "address = \"https://vault.staging.example\"",
        original: ".vault-token",
        copy: "home/.vault-token",
        text: "hvs.of-some-server",
        stays: &[],
        goes: &["hvs"],
    },
    FileCase {
        tool: "terraform",
        binding: "host = \"tfe.staging.example\"",
        original: ".terraform.d/credentials.tfrc.json",
        copy: "home/.terraform.d/credentials.tfrc.json",
        text: "{\"credentials\":{\"tfe.staging.example\":{\"token\":\"keep\"},\"tfe.example\":{\"token\":\"gone\"}}}",
        stays: &["keep"],
        goes: &["gone"],
    },
];

fn run_at(home: &Home, level: &str) {
    home.call(&["run", "--session", "s1", "--context", "c", "--isolate", level, "--", "true"]).ok();
}

#[test]
fn copies_of_other_tools_hold_only_what_is_bound() {
    for case in BY_FILES {
        let home = bound(&case.context());
        case.write(&home);
        if case.tool == "psql" {
            let passwords = "s.example:*:*:u:secret-s\ngone.example:*:*:u:secret-g\n*:*:*:u:secret-any\n";
            home.write(".pgpass", passwords);
        }
        run_at(&home, case.level());
        case.check(&home, "s1");
        if case.tool == "psql" {
            let held = std::fs::read_to_string(room(&home, "s1").join("pg/pgpass")).unwrap();
            assert_eq!(held, "s.example:*:*:u:secret-s\n*:*:*:u:secret-any\n");
        }
    }
}

/// A room that gets a home later is restricted there too.
#[test]
fn home_that_is_moved_later_holds_only_what_is_bound() {
    for case in BY_FILES.iter().filter(|case| case.level() == "home") {
        let home = bound(&case.context());
        case.write(&home);
        let env = ["run", "--session", "s1", "--context", "c", "--", "true"];
        // A login that no variable carries takes effect only at the other level.
        home.call(&env).run().exit(if case.tool == "terraform" { 125 } else { 0 });
        run_at(&home, "home");
        case.check(&home, "s1");
    }
}

#[test]
fn file_that_names_no_target_stays_where_strict_is_off() {
    for (tool, binding, file) in [
        ("vault", "address = \"https://v.example\"", ".vault-token"),
        ("mysql", "group = \"s\"", ".mylogin.cnf"),
    ] {
        let home = bound(&format!("[tools.{tool}]\n{binding}\nstrict = false\n"));
        home.write(file, "secret");
        run_at(&home, "home");
        assert!(room(&home, "s1").join("home").join(file).exists(), "{tool}");
    }
}

#[test]
fn hf_uses_the_token_of_the_bound_account() {
    let home = bound("[tools.hf]\naccount = \"staging\"\n");
    let stored = "[production]\nhf_token = hf_gone\n\n[staging]\nhf_token = hf_keep\n";
    home.write(".cache/huggingface/stored_tokens", stored);
    home.write(".cache/huggingface/token", "hf_gone");
    run(&home, &["true"]).ok();
    let copy = room(&home, "s1").join("hf/token");
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), "hf_keep");
    assert_eq!(home.read(".cache/huggingface/token"), "hf_gone", "the user's own");
    std::fs::write(&copy, "hf_other").unwrap();
    let done = run(&home, &["true"]).ok();
    assert!(done.stderr().contains("pinned to staging again"), "{}", done.told());
    assert!(!done.told().contains("hf_other"), "no message shows a token: {}", done.told());
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), "hf_keep");
}

#[test]
fn s3cmd_with_another_account_does_not_start() {
    let home = bound("[tools.s3cmd]\naccount = \"STAGING\"\n");
    home.write(".s3cfg", "[default]\naccess_key = PRODUCTION\nsecret_key = x\n");
    let done = run(&home, &["true"]).run().exit(125);
    assert!(done.stderr().contains("\"STAGING\" not found in"), "{}", done.told());
    assert!(done.stderr().contains(".s3cfg"), "{}", done.told());
    let home = bound("[tools.s3cmd]\naccount = \"STAGING\"\n");
    home.write(".s3cfg", "[default]\naccess_key = STAGING\nsecret_key = x\n");
    run(&home, &["true"]).ok();
}

#[test]
fn drift_of_a_file_with_sections_is_reported_and_repaired() {
    let home = bound("[tools.linode-cli]\nuser = \"staging\"\n");
    home.write(".config/linode-cli", "[DEFAULT]\ndefault-user = staging\n[staging]\ntoken = t\n");
    let switch = "sed -i s/=.staging/=\\ other/ \"$LINODE_CLI_CONFIG\"; cat \"$LINODE_CLI_CONFIG\"";
    assert!(run(&home, &["sh", "-c", switch]).ok().stdout().contains("default-user = other"));
    let done = run(&home, &["sh", "-c", "cat \"$LINODE_CLI_CONFIG\""]).ok();
    assert!(done.stderr().contains("linode-cli user was other; pinned to staging again"), "{}", done.told());
    assert!(done.stdout().contains("default-user = staging"), "{}", done.told());
}

/// A workspace that is selected in the directory is not the session's if the context binds one.
#[test]
fn terraform_data_of_a_bound_session_selects_no_other_workspace() {
    for (strict, selected) in [("", None), ("strict = false\n", Some("production"))] {
        let home = bound(&format!("[tools.terraform]\nworkspace = \"staging\"\n{strict}"));
        home.write("w/.terraform/environment", "production");
        home.write("w/.terraform/terraform.tfstate", "{}");
        let show = "echo $TF_WORKSPACE; ls \"$TF_DATA_DIR\"; cat \"$TF_DATA_DIR/environment\"";
        let told = run(&home, &["sh", "-c", show]).cwd("w").run().stdout();
        assert!(told.starts_with("staging\n") && told.contains("terraform.tfstate"), "{told}");
        assert_eq!(told.contains("production").then_some("production"), selected, "{told}");
    }
}

/// A tool that is started without its variable looks at its default places.
#[test]
fn default_places_in_a_moved_home_hold_only_what_is_bound() {
    let home = bound("[tools.rclone]\nremote = \"staging\"\n");
    let text = "[staging]\ntype = s3\nkey = keep\n[production]\ntype = s3\nkey = gone\n";
    for file in [".config/rclone/rclone.conf", ".rclone.conf", "elsewhere.conf"] {
        home.write(file, text);
    }
    for (session, variable) in [("s1", None), ("s2", Some(home.path("elsewhere.conf")))] {
        let call = home.call(&["run", "--session", session, "--context", "c", "--isolate", "home", "--"]);
        let call = variable.into_iter().fold(call, |call, path| call.env("RCLONE_CONFIG", path));
        let shown = call.args(&["sh", "-c", "cat ~/.config/rclone/rclone.conf ~/.rclone.conf"]).ok().stdout();
        assert!(shown.contains("keep") && !shown.contains("gone"), "{session}: {shown}");
    }
    assert_eq!(home.read(".rclone.conf"), text, "the user's own");
    let home = bound("[tools.rclone]\nremote = \"staging\"\nstrict = false\n");
    home.write(".rclone.conf", text);
    home.write(".config/rclone/rclone.conf", text);
    let call = home.call(&["run", "--context", "c", "--isolate", "home", "--", "cat", ".rclone.conf"]);
    assert!(call.ok().stdout().contains("gone"));
}
