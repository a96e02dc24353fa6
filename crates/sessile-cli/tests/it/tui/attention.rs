//! The attention line follows the real causes: drift, and sessions and credentials that expire. Requests for approval are in
//! `paths`, questions of agents in `agents`.

use super::TmuxPane;
use crate::isolation::run::kubeconfig;
use crate::{home, start};

#[test]
fn drift_is_reported_until_the_value_is_pinned_again() {
    let home = home();
    home.write(".config/sessile/contexts/c.toml", "[tools.kubectl]\ncontext = [\"staging\", \"dev\"]\n");
    home.write(".kube/config", kubeconfig(&["dev", "staging"]));
    start(&home, &["--name", "web", "--context", "c"]);
    let pane = TmuxPane::with_tui(&home);
    pane.expect("nothing requires attention");
    let run = |words: &[&str]| home.call(&["run", "--session", "web", "--"]).args(words).with_tools().ok();
    run(&["kubectl", "config", "use-context", "dev"]);
    pane.expect("! session \"web\" drifted from its context (press !)");
    pane.expect("DRIFT");
    pane.keys(&["!", "Enter"]);
    pane.expect("kubectl context is dev, pinned to staging");
    pane.keys(&["Escape"]);
    run(&["kubectl", "config", "current-context"]);
    pane.expect("nothing requires attention");
    pane.expect_gone("DRIFT");
}

#[test]
fn session_that_expires_soon_is_reported() {
    let home = home();
    start(&home, &["--name", "brief", "--idle", "20s"]);
    start(&home, &["--name", "web"]);
    let pane = TmuxPane::with_tui(&home);
    pane.expect("! session \"brief\" expires in");
    pane.keys(&["!"]);
    pane.expect(">brief");
    pane.expect("nothing requires attention");
}

#[test]
fn credential_that_expires_soon_is_reported_with_the_command() {
    let home = home();
    start(&home, &["--name", "web"]);
    let pane = TmuxPane::with_tui(&home);
    pane.expect("nothing requires attention");
    let set = ["auth", "set", "bot", "--secret-stdin", "--site", "https://s.example", "--expires-in", "10m"];
    home.call(&set).stdin("s3cret").ok();
    pane.expect("! credential \"bot\" expires in");
    pane.keys(&["!"]);
    pane.expect("renew it: sessile auth login bot, or sessile");
}
