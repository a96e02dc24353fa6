//! Strict rooms of tools that are tried by their files.

use crate::isolation::file_case::FileCase;
use crate::isolation::strict::{bound, run};
use crate::room;

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
];

#[test]
fn copies_of_other_tools_hold_only_what_is_bound() {
    for case in BY_FILES {
        let home = bound(&case.context());
        case.write(&home);
        if case.tool == "psql" {
            let passwords = "s.example:*:*:u:secret-s\ngone.example:*:*:u:secret-g\n*:*:*:u:secret-any\n";
            home.write(".pgpass", passwords);
        }
        run(&home, &["true"]).ok();
        case.check(&home, "s1");
        if case.tool == "psql" {
            let held = std::fs::read_to_string(room(&home, "s1").join("pg/pgpass")).unwrap();
            assert_eq!(held, "s.example:*:*:u:secret-s\n*:*:*:u:secret-any\n");
        }
    }
}
