//! Isolation levels: tools and bindings that the level of a call does not isolate.

use testkit::{Call, Home};

use crate::home;

/// A tool that no variable moves, with a binding that a variable carries and one that only an edit does.
const PROFILE: &str = r#"
name = "acme"
about = "a test"
programs = ["acme"]
env-level = "none"
home = [".acme"]

[[seed]]
from = "{home}/.acme.json"
to = "acme/config.json"
format = "json"
make = "file"

[bind.account]
about = "the account"
edit = [{ file = "acme/config.json", format = "json", set = "account" }]

[bind.host]
about = "the host, which the URL needs"

[bind.url]
about = "the URL"
variables = { ACME_URL = "{value}@{host}" }
"#;

fn acme(bindings: &str) -> Home {
    let home = home();
    home.write(".config/sessile/tools/acme.toml", PROFILE);
    home.write(".acme.json", "{}\n");
    home.write(".config/sessile/contexts/staging.toml", format!("[tools.acme]\n{bindings}"));
    home
}

fn run(home: &Home, flags: &[&str], command: &[&str]) -> Call {
    home.call(&["run"]).args(flags).args(&["--"]).args(command)
}

/// A program of this name that does nothing, in the first directory of the path.
fn program(home: &Home, name: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = home.write(format!("bin/{name}"), "#!/bin/sh\n");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

mod bindings {
    use super::*;

    #[test]
    fn binding_that_no_variable_carries_fails_below_the_level_home() {
        let home = acme("account = \"a\"\n");
        let flags = ["--context", "staging"];
        for command in ["touch", "acme"] {
            let done = run(&home, &flags, &[command, "started"]).run().exit(125);
            assert!(!home.path("started").exists());
            let told = done.stderr();
            assert!(told.contains("tools.acme.account: isolation level env does not isolate acme"), "{told}");
            assert!(told.contains("isolate it: pass --isolate home"), "{told}");
        }
        let error = run(&home, &["--context", "staging", "-ojson"], &["true"]).run().exit(125).json_error();
        assert_eq!(error["code"], "BINDING_NOT_ISOLATED", "{error}");
        run(&home, &["--context", "staging", "--isolate", "home"], &["true"]).ok();
    }

    #[test]
    fn session_with_a_moved_home_fails_only_where_env_is_requested() {
        let home = acme("account = \"a\"\n");
        run(&home, &["--session", "s", "--context", "staging", "--isolate", "home"], &["true"]).ok();
        run(&home, &["--session", "s"], &["true"]).ok();
        run(&home, &["--session", "s", "--isolate", "env"], &["true"]).run().exit(125);
    }

    #[test]
    fn binding_that_a_variable_carries_starts_the_command() {
        let home = acme("url = \"u\"\nhost = \"h\"\n");
        let done = run(&home, &["--context", "staging"], &["sh", "-c", "echo $ACME_URL"]).ok();
        assert_eq!(done.stdout(), "u@h\n");
    }

    #[test]
    fn binding_that_no_level_isolates_fails_at_every_level() {
        let home = acme("account = \"a\"\n");
        let path = ".config/sessile/tools/acme.toml";
        home.write(path, format!("home-level = false{}", home.read(path)));
        for level in ["env", "home"] {
            let done = run(&home, &["--context", "staging", "--isolate", level], &["true"]).run().exit(125);
            assert!(done.stderr().contains("no level isolates it"), "{}", done.told());
        }
    }
}

mod commands {
    use super::*;

    #[test]
    fn tool_that_the_level_does_not_isolate_is_named_when_it_runs() {
        let home = home();
        let said = [
            ("notte", "isolation level env does not isolate notte"),
            ("handler", "isolation level env does not isolate the remembered conversations of handler"),
        ];
        for (tool, message) in said {
            let program = program(&home, tool);
            for flags in [&[][..], &["--session", "s"], &["--session", "s"]] {
                let done = run(&home, flags, &[&program]).ok();
                assert!(done.stderr().contains(message), "{}", done.told());
                assert!(done.stderr().contains("pass --isolate home"), "{}", done.told());
            }
            let done = run(&home, &["--isolate", "home"], &[&program]).ok();
            assert_eq!(done.stderr(), "", "{tool}");
        }
    }

    #[test]
    fn partial_isolation_and_tools_shared_on_request_are_not_named() {
        let home = home();
        for tool in ["aws", "cargo", "claude", "opencode", "ssh", "true"] {
            let program = program(&home, tool);
            assert_eq!(run(&home, &[], &[&program]).ok().stderr(), "", "{tool}");
        }
    }
}
