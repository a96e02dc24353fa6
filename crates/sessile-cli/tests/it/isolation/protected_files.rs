//! Protected targets of tools that are tried by their files.

use crate::isolation::file_case::FileCase;
use crate::isolation::protected::run;
use crate::{home, room};

const BY_FILES: &[FileCase] = &[
    FileCase {
        tool: "az",
        binding: "subscription = \"Production\"",
        original: ".azure/azureProfile.json",
        copy: "azure/azureProfile.json",
        text: "\u{feff}{\"subscriptions\":[{\"id\":\"1\",\"name\":\"Staging\",\"isDefault\":false},{\"id\":\"2\",\"name\":\"Production\",\"isDefault\":true},{\"id\":\"2\",\"name\":\"Alias\",\"isDefault\":false}]}",
        stays: &["Staging"],
        goes: &["Production", "Alias"],
    },
    FileCase {
        tool: "npm",
        binding: "registry = \"https://npm.corp.example/prod/\"",
        original: ".npmrc",
        copy: "npm/npmrc",
        text: "registry=https://public.example/\n@corp:registry=https://npm.corp.example/prod/\n//npm.corp.example/prod/:_authToken=GO1\n\
               //npm.corp.example/prod/sub/:_authToken=GO2\n//public.example/:_authToken=KEEP\n",
        stays: &["KEEP", "@corp:registry=", "registry=https://public.example/"],
        goes: &["GO1", "GO2"],
    },
    FileCase {
        tool: "glab",
        binding: "host = \"gitlab.prod.example\"",
        original: ".config/glab-cli/config.yml",
        copy: "glab/config.yml",
        text: "git_protocol: ssh\nhosts:\n    gitlab.prod.example:\n        token: gone\n    gitlab.com:\n        token: keep\n",
        stays: &["keep", "git_protocol"],
        goes: &["gone"],
    },
    FileCase {
        tool: "doctl",
        binding: "context = \"production\"",
        original: ".config/doctl/config.yaml",
        copy: "xdg/config/doctl/config.yaml",
        text: "context: staging\nauth-contexts:\n    staging: keep\n    production: gone\n    alias: gone\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "argocd",
        binding: "context = \"production\"",
        original: ".config/argocd/config",
        copy: "argocd/config",
        text: "current-context: staging\ncontexts:\n- {name: staging, server: s.example, user: su}\n- {name: production, server: p.example, user: pu}\n\
               - {name: alias, server: p.example, user: pu}\nservers:\n- {server: s.example}\n- {server: p.example}\nusers:\n- {name: su, auth-token: keep}\n- {name: pu, auth-token: gone}\n",
        stays: &["s.example", "keep"],
        goes: &["p.example", "gone", "alias"],
    },
    FileCase {
        tool: "databricks",
        binding: "profile = \"production\"",
        original: ".databrickscfg",
        copy: "databricks/cfg",
        text: "[production]\nhost = https://p.example\ntoken = gone\n[staging]\nhost = https://s.example\ntoken = keep\n[alias]\nhost = https://P.example:443/\ntoken = gone\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "snow",
        binding: "connection = \"production\"",
        original: ".snowflake/config.toml",
        copy: "snowflake/config.toml",
        text: "default_connection_name = \"staging\"\n[cli.logs]\nlevel = \"info\"\n[connections.staging]\naccount = \"keep\"\nuser = \"u\"\n[connections.production]\naccount = \"gone\"\nuser = \"u\"\n\
               [connections.alias]\naccount = \"gone\"\nuser = \"u\"\n",
        stays: &["keep", "cli.logs"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "hcloud",
        binding: "context = \"production\"",
        original: ".config/hcloud/cli.toml",
        copy: "hcloud/cli.toml",
        text: "active_context = \"staging\"\n[[contexts]]\nname = \"staging\"\ntoken = \"keep\"\n[[contexts]]\nname = \"production\"\ntoken = \"gone\"\n[[contexts]]\nname = \"alias\"\ntoken = \"gone\"\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "hcloud",
        binding: "context = \"production\"",
        original: ".config/hcloud/cli.toml",
        copy: "hcloud/cli.toml",
        text: "active_context = \"staging\"\ncontexts = [{ name = \"staging\", token = \"keep\" }, { name = \"production\", token = \"gone\" }, { name = \"alias\", token = \"gone\" }]\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "psql",
        binding: "service = \"production\"",
        original: ".pg_service.conf",
        copy: "pg/service.conf",
        text: "[staging]\nhost=s.example\ndbname=d\nuser=u\n[production]\nhost=p.example\ndbname=d\nuser=u\n[alias]\nhost=p.example\ndbname=d\nuser=u\n",
        stays: &["s.example"],
        goes: &["p.example", "alias"],
    },
    FileCase {
        tool: "rclone",
        binding: "remote = \"production\"",
        original: ".config/rclone/rclone.conf",
        copy: "rclone/rclone.conf",
        text: "[staging]\ntype = s3\naccess_key_id = keep\n[production]\ntype = s3\naccess_key_id = gone\n[alias]\ntype = s3\naccess_key_id = gone\n",
        stays: &["keep"],
        goes: &["gone", "alias"],
    },
    FileCase {
        tool: "gcloud",
        binding: "configuration = \"production\"",
        original: ".config/gcloud/configurations/config_production",
        copy: "gcloud/configurations/config_production",
        text: "[core]\naccount = admin@example.com\nproject = p\n",
        stays: &[],
        goes: &["admin"],
    },
];

#[test]
fn copies_of_other_tools_do_not_hold_what_is_protected() {
    for case in BY_FILES {
        let home = home();
        home.write(
            ".config/sessile/contexts/production.toml",
            format!("guard = \"explicit\"\n{}", case.context()),
        );
        case.write(&home);
        run(&home, &["--session", "s1"], &["true"]).ok();
        case.check(&home, "s1");
    }
}

#[test]
fn file_that_cannot_be_understood_is_not_copied() {
    let home = home();
    let context = "guard = \"explicit\"\n[tools.kubectl]\ncontext = \"production\"\n";
    home.write(".config/sessile/contexts/production.toml", context);
    home.write(".kube/config", "contexts: [production\n  broken: {\n");
    run(&home, &["--session", "s1"], &["true"]).ok();
    assert!(!room(&home, "s1").join("kube/config").exists());
    assert!(home.read(".kube/config").contains("production"), "the user's own file");
}

#[test]
fn hooked_shell_does_not_have_it() {
    let home = crate::isolation::protected::guarded();
    let script =
        "eval \"$(sessile hook bash)\"; sessile session start --name s1; _sessile_hook; cat \"$KUBECONFIG\"";
    let (text, status) = home.shell().run(script);
    assert_eq!(status, 0, "{text}");
    assert!(text.contains("t-staging") && !text.contains("t-production"), "{text}");
}
