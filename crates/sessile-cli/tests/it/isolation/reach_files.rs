//! Which targets the copies of a tool hold: tools that are tried by their files x ways to select x levels.
//!
//! The targets are those of [`reach`](super::reach): `dev` is bound by no context, `staging` by an unguarded one, `production` by a
//! guarded one. In every cell the session's files hold what `status` says, or the command did not start; `production` is in none.

use testkit::Home;

use crate::home;
use crate::isolation::reach::{
    LEVELS, NAMES, ReachRoute, SELECTING, SelectedTarget, reached, write_contexts,
};

/// What a tool's files say of its targets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entries {
    /// All of them, by name.
    Named,
    /// One of them: a session of another does not start.
    One,
    /// One of them, and not which: no session that binds one, or that one is withheld from, has it.
    Unnamed,
}

/// A tool: how it is bound, and what its files hold.
struct FileTool {
    name: &'static str,
    /// The tool whose targets it uses, if they are not its own.
    follows: &'static str,
    program: &'static str,
    binding: fn(target: &str) -> String,
    /// Writes the tool's files, with one target selected.
    write: fn(home: &Home, selected: &str),
    /// The files in a session, as words of a shell.
    files: &'static str,
    entries: Entries,
    /// Whether its files select a target.
    has_selection: bool,
    /// Whether it reads the user's own files below the home, and does not start there while they hold a protected target.
    is_read_below_home: bool,
    /// Of a tool whose files no variable moves, the variable that pins it; empty if none does.
    pinned_by: Option<&'static str>,
}

impl FileTool {
    /// Where most of the tools are alike: all targets by name, one of them selected, files that a variable moves.
    const USUAL: FileTool = FileTool {
        name: "",
        follows: "",
        program: "",
        binding: |_| String::new(),
        write: |_, _| {},
        files: "",
        entries: Entries::Named,
        has_selection: true,
        is_read_below_home: false,
        pinned_by: None,
    };
}

fn each(entry: fn(&str) -> String) -> String {
    NAMES.iter().map(|name| entry(name)).collect()
}

/// Tools that use the contexts of kubectl.
const KUBERNETES: FileTool = FileTool {
    follows: "kubectl",
    binding: |target| format!("context = \"{target}\""),
    write: |home, selected| {
        let list = |kind: &str, entry: fn(&str) -> String| format!("{kind}:\n{}", each(entry));
        let clusters = list("clusters", |name| {
            format!("- {{name: c-{name}, cluster: {{server: 'https://server-of-{name}.example'}}}}\n")
        });
        let users = list("users", |name| format!("- {{name: u-{name}, user: {{token: token-of-{name}}}}}\n"));
        let contexts = list("contexts", |name| {
            format!("- {{name: {name}, context: {{cluster: c-{name}, user: u-{name}}}}}\n")
        });
        let head = format!("apiVersion: v1\nkind: Config\ncurrent-context: {selected}\n");
        home.write(".kube/config", head + &clusters + &users + &contexts);
    },
    files: "\"$KUBECONFIG\"",
    ..FileTool::USUAL
};

const TOOLS: &[FileTool] = &[
    FileTool { name: "kubectl", program: "kubectl", ..KUBERNETES },
    FileTool { name: "helm", program: "helm", ..KUBERNETES },
    FileTool { name: "k9s", program: "k9s", ..KUBERNETES },
    FileTool { name: "oc", program: "oc", ..KUBERNETES },
    FileTool {
        name: "az",
        program: "az",
        binding: |target| format!("subscription = \"{target}\""),
        write: |home, selected| {
            let entries = NAMES.map(|name| {
                let is_default = name == selected;
                format!("{{\"id\":\"id-of-{name}\",\"name\":\"{name}\",\"isDefault\":{is_default}}}")
            });
            let text = format!("{{\"subscriptions\":[{}]}}", entries.join(","));
            home.write(".azure/azureProfile.json", text);
        },
        files: "\"$AZURE_CONFIG_DIR/azureProfile.json\"",
        ..FileTool::USUAL
    },
    FileTool {
        name: "glab",
        program: "glab",
        binding: |target| format!("host = \"{target}.example\""),
        write: |home, _| {
            let hosts = each(|name| format!("    {name}.example:\n        token: token-of-{name}\n"));
            home.write(".config/glab-cli/config.yml", format!("hosts:\n{hosts}"));
        },
        files: "\"$GLAB_CONFIG_DIR/config.yml\"",
        has_selection: false,
        ..FileTool::USUAL
    },
    FileTool {
        name: "doctl",
        program: "doctl",
        binding: |target| format!("context = \"{target}\""),
        write: |home, selected| {
            let contexts = each(|name| format!("    {name}: token-of-{name}\n"));
            home.write(
                ".config/doctl/config.yaml",
                format!("context: {selected}\nauth-contexts:\n{contexts}"),
            );
        },
        files: "\"$XDG_CONFIG_HOME/doctl/config.yaml\"",
        ..FileTool::USUAL
    },
    FileTool {
        name: "argocd",
        program: "argocd",
        binding: |target| format!("context = \"{target}\""),
        write: |home, selected| {
            let contexts =
                each(|name| format!("- {{name: {name}, server: {name}.example, user: u-{name}}}\n"));
            let servers = each(|name| format!("- {{server: {name}.example}}\n"));
            let users = each(|name| format!("- {{name: u-{name}, auth-token: token-of-{name}}}\n"));
            home.write(
                ".config/argocd/config",
                format!(
                    "current-context: {selected}\ncontexts:\n{contexts}servers:\n{servers}users:\n{users}"
                ),
            );
        },
        files: "\"$ARGOCD_CONFIG_DIR/config\"",
        ..FileTool::USUAL
    },
    FileTool {
        name: "databricks",
        program: "databricks",
        binding: |target| format!("profile = \"{target}\""),
        write: |home, selected| {
            let profiles =
                each(|name| format!("[{name}]\nhost = https://{name}.example\ntoken = token-of-{name}\n"));
            let own = format!("[DEFAULT]\nhost = https://{selected}.example\ntoken = token-of-{selected}\n");
            home.write(".databrickscfg", own + &profiles);
        },
        files: "\"$DATABRICKS_CONFIG_FILE\"",
        ..FileTool::USUAL
    },
    FileTool {
        name: "snow",
        program: "snow",
        binding: |target| format!("connection = \"{target}\""),
        write: |home, selected| {
            let connections =
                each(|name| format!("[connections.{name}]\naccount = \"account-of-{name}\"\nuser = \"u\"\n"));
            let text = format!("default_connection_name = \"{selected}\"\n{connections}");
            home.write(".snowflake/config.toml", text);
        },
        files: "\"$SNOWFLAKE_HOME/config.toml\"",
        ..FileTool::USUAL
    },
    FileTool {
        name: "hcloud",
        program: "hcloud",
        binding: |target| format!("context = \"{target}\""),
        write: |home, selected| {
            let contexts =
                each(|name| format!("[[contexts]]\nname = \"{name}\"\ntoken = \"token-of-{name}\"\n"));
            home.write(".config/hcloud/cli.toml", format!("active_context = \"{selected}\"\n{contexts}"));
        },
        files: "\"$HCLOUD_CONFIG\"",
        ..FileTool::USUAL
    },
    FileTool {
        name: "psql",
        program: "psql",
        binding: |target| format!("service = \"{target}\""),
        write: |home, _| {
            let services = each(|name| format!("[{name}]\nhost=host-of-{name}\ndbname=d\nuser=u\n"));
            home.write(".pg_service.conf", services);
            home.write(".pgpass", each(|name| format!("host-of-{name}:*:*:u:password-of-{name}\n")));
        },
        files: "\"$PGSERVICEFILE\" \"$PGPASSFILE\"",
        has_selection: false,
        ..FileTool::USUAL
    },
    FileTool {
        name: "rclone",
        program: "rclone",
        binding: |target| format!("remote = \"{target}\""),
        write: |home, _| {
            let remotes = each(|name| format!("[{name}]\ntype = s3\naccess_key_id = key-of-{name}\n"));
            home.write(".config/rclone/rclone.conf", remotes);
        },
        files: "\"$RCLONE_CONFIG\"",
        has_selection: false,
        ..FileTool::USUAL
    },
    FileTool {
        name: "gcloud",
        program: "gcloud",
        binding: |target| format!("configuration = \"{target}\""),
        write: |home, selected| {
            for name in NAMES {
                let text = format!("[core]\naccount = account-of-{name}\nproject = p\n");
                home.write(format!(".config/gcloud/configurations/config_{name}"), text);
            }
            home.write(".config/gcloud/active_config", selected);
        },
        files: "\"$CLOUDSDK_CONFIG\"/configurations/*",
        ..FileTool::USUAL
    },
    FileTool {
        name: "linode-cli",
        program: "linode-cli",
        binding: |target| format!("user = \"{target}\""),
        write: |home, selected| {
            let users = each(|name| format!("[{name}]\ntoken = token-of-{name}\n"));
            home.write(".config/linode-cli", format!("[DEFAULT]\ndefault-user = {selected}\n{users}"));
        },
        files: "\"$LINODE_CLI_CONFIG\"",
        ..FileTool::USUAL
    },
    FileTool {
        name: "dvc",
        program: "dvc",
        binding: |target| format!("remote = \"{target}\""),
        write: |home, selected| {
            let remotes = each(|name| format!("['remote \"{name}\"']\n    url = s3://bucket-of-{name}\n"));
            home.write(".config/dvc/config", format!("[core]\n    remote = {selected}\n{remotes}"));
        },
        files: "\"$DVC_GLOBAL_CONFIG_DIR/config\"",
        ..FileTool::USUAL
    },
    FileTool {
        name: "hf",
        program: "hf",
        binding: |target| format!("account = \"{target}\""),
        write: |home, selected| {
            let tokens = each(|name| format!("[{name}]\nhf_token = token-of-{name}\n"));
            home.write(".cache/huggingface/stored_tokens", tokens);
            home.write(".cache/huggingface/token", format!("token-of-{selected}"));
        },
        files: "\"$HF_HOME/stored_tokens\" \"$HF_HOME/token\"",
        ..FileTool::USUAL
    },
    FileTool {
        name: "poetry",
        program: "poetry",
        binding: |target| format!("repository = \"{target}\""),
        write: |home, _| {
            let addresses = each(|name| format!("[repositories.{name}]\nurl = \"https://url-of-{name}\"\n"));
            let logins = each(|name| {
                format!("[http-basic.{name}]\nusername = \"u\"\npassword = \"password-of-{name}\"\n")
            });
            let tokens = each(|name| format!("{name} = \"token-of-{name}\"\n"));
            home.write(".config/pypoetry/config.toml", addresses);
            home.write(".config/pypoetry/auth.toml", format!("{logins}[pypi-token]\n{tokens}"));
        },
        files: "\"$POETRY_CONFIG_DIR/config.toml\" \"$POETRY_CONFIG_DIR/auth.toml\"",
        has_selection: false,
        ..FileTool::USUAL
    },
    FileTool {
        name: "s3cmd",
        program: "s3cmd",
        binding: |target| format!("account = \"key-of-{target}\""),
        write: |home, selected| {
            let text =
                format!("[default]\naccess_key = key-of-{selected}\nsecret_key = secret-of-{selected}\n");
            home.write(".s3cfg", text);
        },
        files: "\"$S3CMD_CONFIG\"",
        entries: Entries::One,
        ..FileTool::USUAL
    },
    FileTool {
        name: "yarn",
        program: "yarn",
        binding: |target| format!("registry = \"https://{target}.example\""),
        write: |home, selected| {
            let registries = each(|name| format!("  //{name}.example:\n    npmAuthToken: token-of-{name}\n"));
            let own =
                format!("npmRegistryServer: https://{selected}.example\nnpmAuthToken: token-of-{selected}\n");
            home.write(".yarnrc.yml", format!("{own}npmRegistries:\n{registries}"));
        },
        files: "~/.yarnrc.yml",
        has_selection: false,
        is_read_below_home: true,
        pinned_by: Some("YARN_NPM_REGISTRY_SERVER"),
        ..FileTool::USUAL
    },
    FileTool {
        name: "mysql",
        program: "mysql",
        binding: |target| format!("group = \"{target}\""),
        write: |home, selected| {
            let groups =
                each(|name| format!("[client_{name}]\nhost=host-of-{name}\nport=1\npassword=p-of-{name}\n"));
            let own = format!("[client]\nhost=host-of-{selected}\nport=1\npassword=p-of-{selected}\n");
            home.write(".my.cnf", own + &groups);
        },
        files: "~/.my.cnf",
        pinned_by: Some("MYSQL_GROUP_SUFFIX"),
        ..FileTool::USUAL
    },
    FileTool {
        name: "vault",
        program: "vault",
        binding: |target| format!("address = \"https://{target}.example\""),
        write: |home, selected| {
            home.write(".vault-token", format!("token-of-{selected}"));
        },
        files: "~/.vault-token",
        entries: Entries::Unnamed,
        has_selection: false,
        pinned_by: Some("VAULT_ADDR"),
        ..FileTool::USUAL
    },
    FileTool {
        name: "terraform",
        program: "terraform",
        binding: |target| format!("host = \"{target}.example\""),
        write: |home, _| {
            let hosts =
                NAMES.map(|name| format!("\"{name}.example\":{{\"token\":\"token-of-{name}\"}}")).join(",");
            home.write(".terraform.d/credentials.tfrc.json", format!("{{\"credentials\":{{{hosts}}}}}"));
        },
        files: "~/.terraform.d/credentials.tfrc.json",
        has_selection: false,
        pinned_by: Some(""),
        ..FileTool::USUAL
    },
];

fn home_of(tool: &FileTool, selected: &str) -> Home {
    let home = home();
    (tool.write)(&home, selected);
    write_contexts(&home, if tool.follows.is_empty() { tool.name } else { tool.follows }, tool.binding);
    home
}

impl FileTool {
    /// What the session's files hold, and the status of the call.
    fn look(&self, selected: &SelectedTarget, level: &str) -> (Vec<&'static str>, i32, String) {
        // Messages of a call may name a target that the files do not hold.
        let script = format!("cat {} 2>/dev/null | sed 's/^/held: /'", self.files);
        let (text, status) = selected.run(level, &["sh".to_owned(), "-c".to_owned(), script]);
        let held: String = text.lines().filter(|line| line.contains("held: ")).collect();
        (reached(&held), status, text)
    }

    /// Whether a level moves its files.
    fn is_moved(&self, level: &str) -> bool {
        level == "home" || self.pinned_by.is_none()
    }

    fn check_bound(&self, selected: &SelectedTarget, level: &str) {
        let cell = format!("{} {:?} {level}", self.name, selected.way);
        assert_eq!(selected.status().as_deref(), Some("staging"), "{cell}");
        if let (false, Some(variable)) = (self.is_moved(level), self.pinned_by) {
            let (text, status) = selected.run(level, &["printenv".to_owned(), variable.to_owned()]);
            match variable {
                "" => assert_eq!(status, 125, "{cell}: not started: {text}"),
                _ => assert!(status == 0 && text.contains("staging"), "{cell}: {text}"),
            }
            return;
        }
        let (holds, status, text) = self.look(selected, level);
        let wanted = match self.entries {
            Entries::Named => (vec!["staging"], 0),
            Entries::One => (vec![], 125),
            Entries::Unnamed => (vec![], 0),
        };
        assert_eq!((holds, status), wanted, "{cell}: {text}");
    }

    fn check_own(&self, own: &SelectedTarget, level: &str, user_selects: &str) {
        let cell = format!("{} {user_selects} {level}", self.name);
        if !self.is_moved(level) {
            let (text, status) = own.run(level, &[self.program.to_owned(), "--version".to_owned()]);
            if self.has_selection && user_selects == "production" {
                assert_eq!(status, 125, "{cell}: {text}");
                return;
            }
            // Its file stays, so nothing may claim that the target was withheld.
            match self.is_read_below_home {
                true => assert_eq!(status, 125, "{cell}: {text}"),
                false => assert!(text.contains("isolation level env does not withhold"), "{cell}: {text}"),
            }
            let (text, _) = own.run_verbosely(level, &["true".to_owned()]);
            assert!(!text.contains(&format!("withheld {}", self.name)), "{cell}: {text}");
            return;
        }
        let (holds, status, text) = self.look(own, level);
        assert_eq!(status, 0, "{cell}: {text}");
        let wanted = match (self.entries, user_selects) {
            (Entries::Named, _) => vec!["dev", "staging"],
            (Entries::One, "dev") => vec!["dev"],
            _ => vec![],
        };
        assert_eq!(holds, wanted, "{cell}: {text}");
        let (text, status) = own.run(level, &[self.program.to_owned(), "--version".to_owned()]);
        let is_refused = self.is_read_below_home || self.has_selection && user_selects == "production";
        assert_eq!(status == 125, is_refused, "{cell}: {status} {text}");
    }
}

fn try_tool(name: &str) {
    let tool = TOOLS.iter().find(|tool| tool.name == name).unwrap();
    for way in SELECTING {
        let selected = SelectedTarget::new(home_of(tool, "production"), way);
        for level in LEVELS {
            tool.check_bound(&selected, level);
        }
    }
    for user_selects in ["dev", "production"] {
        let own = SelectedTarget::new(home_of(tool, user_selects), ReachRoute::None);
        for level in LEVELS {
            assert_eq!(own.status(), None, "{name} {level}");
            tool.check_own(&own, level, user_selects);
        }
    }
}

macro_rules! table {
    ($($test:ident: $tool:literal,)*) => {
        $(#[test]
        fn $test() {
            try_tool($tool);
        })*

        #[test]
        fn every_tool_of_the_table_has_a_test() {
            let tested = [$($tool),*];
            assert!(TOOLS.iter().all(|tool| tested.contains(&tool.name)) && tested.len() == TOOLS.len());
        }
    };
}

/// Tools whose target is a variable and nothing else: tool, key, variable, and whether the variable is withheld.
const VARIABLES: &[(&str, &str, &str, bool)] = &[
    ("terraform", "workspace", "TF_WORKSPACE", true),
    ("helm", "context", "HELM_KUBECONTEXT", true),
    ("psql", "host", "PGHOST", true),
    ("mysql", "host", "MYSQL_HOST", true),
    ("ssh", "host", "SSH_HOST", false),
];

#[test]
fn variables_of_tools_without_files_say_what_status_says() {
    for &(tool, key, variable, is_withheld) in VARIABLES {
        let home_of = || {
            let home = home();
            write_contexts(&home, tool, |target| format!("{key} = \"{target}\""));
            home
        };
        let print = ["sh".to_owned(), "-c".to_owned(), format!("echo value-of-${{{variable}-none}}")];
        for way in SELECTING {
            let selected = SelectedTarget::new(home_of(), way);
            for level in LEVELS {
                let cell = format!("{tool} {way:?} {level}");
                assert_eq!(selected.status().as_deref(), Some("staging"), "{cell}");
                let (text, status) = selected.run(level, &print);
                assert_eq!((reached(&text), status), (vec!["staging"], 0), "{cell}: {text}");
            }
        }
        let own = SelectedTarget::new(home_of(), ReachRoute::None);
        for (value, level) in NAMES.iter().flat_map(|name| LEVELS.map(|level| (*name, level))) {
            let cell = format!("{tool} {value} {level}");
            let run = |command: &[&str]| {
                let call = own.call(&["run", "--isolate", level, "--"]).args(command);
                call.env(variable, value).run()
            };
            let is_gone = is_withheld && value == "production";
            let done = run(&["sh", "-c", &print[2]]).exit(0);
            let left = if is_gone { vec![] } else { vec![value] };
            assert_eq!(reached(&done.stdout()), left, "{cell}: {}", done.told());
            let done = run(&[tool, "--version"]);
            assert_eq!(done.status() == Some(125), is_gone, "{cell}: {}", done.told());
        }
        let shown = own.call(&["context", "show", "production"]).ok().stdout();
        let is_named = shown.lines().any(|line| line.starts_with("  unprotected") && line.contains(tool));
        assert!(is_named, "{tool}: {shown}");
    }
}

table! {
    kubectl_copies_hold_what_status_says: "kubectl",
    helm_copies_hold_what_status_says: "helm",
    k9s_copies_hold_what_status_says: "k9s",
    oc_copies_hold_what_status_says: "oc",
    az_copies_hold_what_status_says: "az",
    glab_copies_hold_what_status_says: "glab",
    doctl_copies_hold_what_status_says: "doctl",
    argocd_copies_hold_what_status_says: "argocd",
    databricks_copies_hold_what_status_says: "databricks",
    snow_copies_hold_what_status_says: "snow",
    hcloud_copies_hold_what_status_says: "hcloud",
    psql_copies_hold_what_status_says: "psql",
    rclone_copies_hold_what_status_says: "rclone",
    gcloud_copies_hold_what_status_says: "gcloud",
    linode_cli_copies_hold_what_status_says: "linode-cli",
    dvc_copies_hold_what_status_says: "dvc",
    hf_copies_hold_what_status_says: "hf",
    poetry_copies_hold_what_status_says: "poetry",
    s3cmd_copies_hold_what_status_says: "s3cmd",
    yarn_copies_hold_what_status_says: "yarn",
    mysql_copies_hold_what_status_says: "mysql",
    vault_copies_hold_what_status_says: "vault",
    terraform_copies_hold_what_status_says: "terraform",
}
