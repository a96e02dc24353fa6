//! The usual places of tools in a room's home, where a variable of the user leads the tool elsewhere.

use testkit::Home;

use crate::isolation::protected::run;
use crate::{home, room};

/// A tool whose variable can name another place.
struct MovedTool {
    tool: &'static str,
    /// Key of the binding; the targets are `prod` and `stag`, or what `binding` makes of them.
    binding: &'static str,
    variable: &'static str,
    /// Usual place below the home: a file, or a directory of the files.
    place: &'static str,
    /// Files below the place. The protected target is selected, and what belongs to it contains `GONE`.
    files: &'static [(&'static str, &'static str)],
}

const TOOLS: &[MovedTool] = &[
    MovedTool {
        tool: "gh",
        binding: "user = \"{}\"",
        variable: "GH_CONFIG_DIR",
        place: ".config/gh",
        files: &[(
            "hosts.yml",
            "github.com:\n    users:\n        prod:\n            oauth_token: GONE\n        stag:\n            oauth_token: keep\n    user: prod\n    oauth_token: GONE\n",
        )],
    },
    MovedTool {
        tool: "hf",
        binding: "account = \"{}\"",
        variable: "HF_HOME",
        place: ".cache/huggingface",
        files: &[
            ("stored_tokens", "[prod]\nhf_token = hf_GONE\n[stag]\nhf_token = hf_keep\n"),
            ("token", "hf_GONE"),
        ],
    },
    MovedTool {
        tool: "argocd",
        binding: "context = \"{}\"",
        variable: "ARGOCD_CONFIG_DIR",
        place: ".config/argocd",
        files: &[(
            "config",
            "current-context: prod\ncontexts:\n- {name: prod, server: GONE.example, user: GONE}\n- {name: stag, server: keep.example, user: su}\n\
             servers:\n- {server: GONE.example}\n- {server: keep.example}\nusers:\n- {name: GONE, auth-token: GONE}\n- {name: su, auth-token: keep}\n",
        )],
    },
    MovedTool {
        tool: "hcloud",
        binding: "context = \"{}\"",
        variable: "HCLOUD_CONFIG",
        place: ".config/hcloud/cli.toml",
        files: &[(
            "",
            "active_context = \"prod\"\n[[contexts]]\nname = \"prod\"\ntoken = \"GONE\"\n[[contexts]]\nname = \"stag\"\ntoken = \"keep\"\n",
        )],
    },
    MovedTool {
        tool: "linode-cli",
        binding: "user = \"{}\"",
        variable: "LINODE_CLI_CONFIG",
        place: ".config/linode-cli",
        files: &[("", "[DEFAULT]\ndefault-user = prod\n[prod]\ntoken = GONE\n[stag]\ntoken = keep\n")],
    },
    MovedTool {
        tool: "s3cmd",
        binding: "account = \"{}\"",
        variable: "S3CMD_CONFIG",
        place: ".s3cfg",
        files: &[(
            "",
            "[default]\naccess_key = prod\nsecret_key = GONE\n[other]\naccess_key = stag\nsecret_key = keep\n",
        )],
    },
    MovedTool {
        tool: "glab",
        binding: "host = \"{}.example\"",
        variable: "GLAB_CONFIG_DIR",
        place: ".config/glab-cli",
        files: &[(
            "config.yml",
            "host: prod.example\nhosts:\n    prod.example:\n        token: GONE\n    stag.example:\n        token: keep\n",
        )],
    },
    MovedTool {
        tool: "snow",
        binding: "connection = \"{}\"",
        variable: "SNOWFLAKE_HOME",
        place: ".snowflake",
        files: &[
            ("config.toml", "default_connection_name = \"prod\"\n"),
            (
                "connections.toml",
                "[prod]\naccount = \"GONE\"\nuser = \"u\"\n[stag]\naccount = \"keep\"\nuser = \"u\"\n",
            ),
        ],
    },
    MovedTool {
        tool: "npm",
        binding: "registry = \"https://{}.example/\"",
        variable: "NPM_CONFIG_USERCONFIG",
        place: ".npmrc",
        files: &[(
            "",
            "registry=https://prod.example/\n//prod.example/:_authToken=GONE\n//stag.example/:_authToken=keep\n",
        )],
    },
    MovedTool {
        tool: "poetry",
        binding: "repository = \"{}\"",
        variable: "POETRY_CONFIG_DIR",
        place: ".config/pypoetry",
        files: &[
            ("config.toml", "[repositories.stag]\nurl = \"https://keep.example/\"\n"),
            (
                "auth.toml",
                "[http-basic.prod]\nusername = \"u\"\npassword = \"GONE\"\n[http-basic.stag]\nusername = \"u\"\npassword = \"keep\"\n",
            ),
        ],
    },
    MovedTool {
        tool: "aws",
        binding: "profile = \"{}\"",
        variable: "AWS_SHARED_CREDENTIALS_FILE",
        place: ".aws/credentials",
        files: &[(
            "",
            "[default]\naws_access_key_id = GONE\n[prod]\naws_access_key_id = GONE\n[stag]\naws_access_key_id = keep\n",
        )],
    },
    MovedTool {
        tool: "doctl",
        binding: "context = \"{}\"",
        variable: "XDG_CONFIG_HOME",
        place: ".config",
        files: &[(
            "doctl/config.yaml",
            "access-token: GONE\ncontext: prod\nauth-contexts:\n    prod: GONE\n    stag: keep\n",
        )],
    },
    MovedTool {
        tool: "pnpm",
        binding: "registry = \"https://{}.example/\"",
        variable: "XDG_CONFIG_HOME",
        place: ".config",
        files: &[("pnpm/auth.ini", "//prod.example/:_authToken=GONE\n//stag.example/:_authToken=keep\n")],
    },
];

impl MovedTool {
    fn write(&self, home: &Home) {
        let production = self.binding.replace("{}", "prod");
        let staging = self.binding.replace("{}", "stag");
        for (name, text) in [
            ("production", format!("guard = \"explicit\"\n[tools.{}]\n{production}\n", self.tool)),
            ("staging", format!("[tools.{}]\n{staging}\nstrict = false\n", self.tool)),
        ] {
            home.write(format!(".config/sessile/contexts/{name}.toml"), text);
        }
        for (file, text) in self.files {
            for dir in [self.place, "elsewhere"] {
                home.write([dir, file].join("/").trim_end_matches('/'), *text);
            }
        }
    }
}

#[test]
fn usual_place_in_a_room_does_not_hold_what_is_protected() {
    let mut wrong = Vec::new();
    for case in TOOLS {
        for flags in [&[][..], &["--context", "staging"]] {
            let home = home();
            case.write(&home);
            let flags = [&["--session", "s1", "--isolate", "home"], flags].concat();
            let mut call = run(&home, &flags, &["true"]).env(case.variable, home.path("elsewhere"));
            if case.variable == "XDG_CONFIG_HOME" {
                // Contexts are there too.
                for name in ["production", "staging"] {
                    let path = format!(".config/sessile/contexts/{name}.toml");
                    home.write(path.replace(".config", "elsewhere"), home.read(&path));
                }
                std::fs::remove_dir_all(home.path(".config/sessile")).unwrap();
                call = call.env("XDG_CONFIG_HOME", home.path("elsewhere"));
            }
            call.ok();
            for (file, text) in case.files {
                let path = [case.place, file].join("/");
                let path = path.trim_end_matches('/');
                let held =
                    std::fs::read_to_string(room(&home, "s1").join("home").join(path)).unwrap_or_default();
                if held.contains("GONE")
                    || text.contains("GONE") && text.contains("keep") && !held.contains("keep")
                {
                    wrong.push(format!("{} {flags:?}: {path} is {held:?}", case.tool));
                }
                assert_eq!(home.read(path), *text, "{}: the user's own file", case.tool);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
