//! Drift: what the tools' copies select, where a command of the session has moved it away from the pin.

use serde_json::json;
use testkit::{Call, Home};

use crate::isolation::run::kubeconfig;
use crate::{home, room, shown};

const CONTEXT: &str = "[tools.kubectl]\ncontext = [\"staging\", \"dev\"]\nnamespace = \"web\"\n";

fn run(home: &Home, command: &[&str]) -> Call {
    home.call(&["run", "--session", "s1", "--context", "c", "--"]).args(command).with_tools()
}

fn bound(toml: &str) -> Home {
    let home = home();
    home.write(".config/sessile/contexts/c.toml", toml);
    home.write(".kube/config", kubeconfig(&["dev", "staging", "production"]));
    home
}

fn status(home: &Home) -> serde_json::Value {
    home.call(&["status", "--session", "s1", "--output", "json"]).ok().json()
}

#[test]
fn switched_context_and_namespace_are_reported() {
    for toml in [CONTEXT, "[tools.kubectl]\ncontext = \"staging\"\nnamespace = \"web\"\nstrict = false\n"] {
        let home = bound(toml);
        run(&home, &["kubectl", "config", "current-context"]).ok();
        assert_eq!(shown(&home, "s1")["drift"], json!([]));
        assert_eq!(status(&home)["drift"], json!([]));
        let switch = "kubectl config set-context staging --namespace=other && kubectl config use-context dev";
        run(&home, &["sh", "-c", switch]).ok();
        let drift = json!([
            { "tool": "kubectl", "key": "context", "pinned": "staging", "current": "dev" },
            { "tool": "kubectl", "key": "namespace", "pinned": "web", "current": "other" },
        ]);
        assert_eq!(shown(&home, "s1")["drift"], drift);
        assert_eq!(status(&home)["drift"], drift);
        let text = home.call(&["session", "show", "s1"]).ok().stdout();
        assert!(text.contains("  drift     kubectl context is dev, pinned to staging\n"), "{text}");
        let text = home.call(&["status", "--session", "s1"]).ok().stdout();
        assert!(text.contains("drift     kubectl namespace is other, pinned to web\n"), "{text}");
    }
}

#[test]
fn next_run_pins_again_and_says_so_once() {
    let home = bound(CONTEXT);
    run(&home, &["kubectl", "config", "use-context", "dev"]).ok();
    let current = ["kubectl", "config", "current-context"];
    let done = run(&home, &current).ok();
    assert_eq!(done.stdout(), "staging\n");
    assert_eq!(done.stderr(), "warning: kubectl context was dev; pinned to staging again\n");
    let again = run(&home, &current).ok();
    assert_eq!((again.stdout().as_str(), again.stderr().as_str()), ("staging\n", ""));
    assert_eq!(shown(&home, "s1")["drift"], json!([]));
}

/// The name stays, and the next command would go elsewhere under it.
#[test]
fn pinned_entry_with_another_address_is_drift() {
    for toml in [CONTEXT, "[tools.kubectl]\ncontext = \"staging\"\nstrict = false\n"] {
        for change in [
            "kubectl config set-cluster c --server=http://127.0.0.1:99",
            "kubectl config set-cluster own --server=http://127.0.0.1:99; kubectl config set-context staging --cluster=own",
        ] {
            let home = bound(toml);
            let view =
                ["sh", "-c", "kubectl config view --minify -o 'jsonpath={.clusters[0].cluster.server}'"];
            let server = run(&home, &view).ok().stdout();
            run(&home, &["sh", "-c", change]).ok();
            let drift = shown(&home, "s1")["drift"].clone();
            assert_eq!(drift[0]["key"], "context", "{change}: {drift}");
            assert_eq!(drift[0]["current"], "localhost:99", "{change}: {drift}");
            assert_eq!(status(&home)["drift"], drift);
            let done = run(&home, &view).ok();
            assert_eq!(done.stdout(), server, "{change}");
            assert!(
                done.stderr().contains("kubectl context was localhost:99; pinned to staging again"),
                "{}",
                done.told()
            );
            assert_eq!(run(&home, &view).ok().stderr(), "", "said once");
            assert_eq!(shown(&home, "s1")["drift"], json!([]));
        }
    }
}

#[test]
fn renewed_login_of_a_pinned_entry_does_not_drift() {
    let home = bound(CONTEXT);
    run(&home, &["kubectl", "config", "set-credentials", "u", "--token=renewed"]).ok();
    assert_eq!(shown(&home, "s1")["drift"], json!([]));
    assert_eq!(run(&home, &["true"]).ok().stderr(), "");
}

#[test]
fn other_changes_of_a_copy_are_not_drift() {
    let home = bound(CONTEXT);
    run(&home, &["kubectl", "config", "set-context", "own", "--cluster=c"]).ok();
    assert_eq!(shown(&home, "s1")["drift"], json!([]));
    assert_eq!(run(&home, &["kubectl", "config", "current-context"]).ok().stderr(), "");
    // A context that says something else now moves the pin; nobody has drifted.
    home.write(".config/sessile/contexts/c.toml", "[tools.kubectl]\ncontext = \"dev\"\n");
    assert_eq!(run(&home, &["kubectl", "config", "current-context"]).ok().stderr(), "");
}

#[test]
fn removed_or_damaged_target_is_drift_without_a_value() {
    for spoil in
        ["kubectl config unset current-context", "rm \"$KUBECONFIG\"", "echo '{{{' > \"$KUBECONFIG\""]
    {
        let home = bound("[tools.kubectl]\ncontext = \"staging\"\n");
        run(&home, &["sh", "-c", spoil]).ok();
        let drift = shown(&home, "s1")["drift"].clone();
        assert_eq!(
            drift,
            json!([{ "tool": "kubectl", "key": "context", "pinned": "staging", "current": null }]),
            "{spoil}"
        );
    }
}

#[test]
fn session_without_a_context_has_no_drift() {
    let home = bound(CONTEXT);
    home.call(&["run", "--session", "s2", "--", "kubectl", "config", "use-context", "production"])
        .with_tools()
        .ok();
    assert_eq!(shown(&home, "s2")["drift"], json!([]));
}

mod changed_copies {
    use super::*;

    #[test]
    fn session_show_names_the_path_of_each() {
        let home = bound(CONTEXT);
        run(&home, &["true"]).ok();
        let text = home.call(&["session", "show", "s1"]).ok().stdout();
        assert!(!text.contains("changed"), "{text}");
        run(&home, &["kubectl", "config", "set-context", "own"]).ok();
        let copy = room(&home, "s1").join("kube/config");
        let text = home.call(&["session", "show", "s1"]).ok().stdout();
        assert!(text.contains(&format!("  changed   {}\n", copy.display())), "{text}");
        let copies = &shown(&home, "s1")["changed"];
        assert_eq!(*copies, json!([copy]));
    }

    #[test]
    fn ephemeral_session_says_which_it_discards() {
        let home = home();
        home.write(".kube/config", kubeconfig(&["dev", "staging"]));
        let ephemeral = |flags: &[&str], command: &[&str]| {
            home.call(&["run"]).args(flags).args(&["--"]).args(command).with_tools().ok().stderr()
        };
        let switch = ["kubectl", "config", "use-context", "staging"];
        let told = "discarded changes to kube/config: the session was for this command only; pass --session NAME to keep them\n";
        assert_eq!(ephemeral(&[], &switch), told);
        assert_eq!(ephemeral(&["--quiet"], &switch), "");
        assert_eq!(ephemeral(&[], &["kubectl", "config", "current-context"]), "");
        assert_eq!(ephemeral(&["--session", "named"], &switch), "", "the named session keeps its copies");
        let made = "mkdir -p \"$DOCKER_CONFIG\" && echo '{}' > \"$DOCKER_CONFIG/config.json\"";
        let told = ephemeral(&[], &["sh", "-c", made]);
        assert!(told.contains("docker"), "{told}");
    }

    /// Entries that Sessile removes from the file of another tool do not count as changes of the session.
    #[test]
    fn restricted_file_of_another_tool_counts_as_unchanged() {
        let tokens = "//a.example/:_authToken=a\n//b.example/:_authToken=b\n";
        for binding in ["pnpm", "yarn"] {
            let home = bound(&format!("[tools.{binding}]\nregistry = \"https://a.example/\"\n"));
            home.write(".npmrc", tokens);
            // In the home pnpm would read the user's own file as that of a project.
            home.write("app/package.json", "{}");
            let read = ["sh", "-c", "cat $NPM_CONFIG_USERCONFIG"];
            let one_command =
                || home.call(&["run", "--context", "c", "--"]).args(&read).with_tools().cwd("app").ok();
            let done = one_command();
            assert_eq!(
                (done.stdout().as_str(), done.stderr().as_str()),
                ("//a.example/:_authToken=a\n", ""),
                "{binding}: bound"
            );
            home.write(
                ".config/sessile/contexts/p.toml",
                format!("guard = \"approval\"\n[tools.{binding}]\nregistry = \"https://b.example/\"\n"),
            );
            home.write(".config/sessile/contexts/c.toml", "");
            let done = one_command();
            assert_eq!(
                (done.stdout().as_str(), done.stderr().as_str()),
                ("//a.example/:_authToken=a\n", ""),
                "{binding}: protected"
            );
        }
    }

    /// It touches them at any command.
    #[test]
    fn time_stamps_of_hf_do_not_count_as_changes() {
        let home = home();
        home.write(".cache/huggingface/token", "hf_own");
        let script = "touch \"$HF_HOME/.check_for_update_done\" \"$HF_HOME/.check_for_skill_update_done\"; \
                      cat \"$HF_HOME/token\"";
        let done = home.call(&["run", "--", "sh", "-c", script]).with_tools().ok();
        assert_eq!((done.stdout().as_str(), done.stderr().as_str()), ("hf_own", ""));
    }

    #[test]
    fn history_of_a_session_lists_what_was_done_in_it() {
        let home = bound(CONTEXT);
        let program = home.program().display().to_string();
        let inside = format!("{program} config set color never && {program} session state set k 1");
        run(&home, &["sh", "-c", &inside]).ok();
        home.call(&["config", "set", "color", "never", "--global"]).ok();
        let list = home.call(&["history", "--session", "s1", "--output", "json"]).ok().json();
        let commands: Vec<&str> =
            list.as_array().unwrap().iter().map(|one| one["command"].as_str().unwrap()).collect();
        assert_eq!(commands, ["session state set", "config set", "run"]);
    }
}
