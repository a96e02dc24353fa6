//! The output contract: what stands on which stream, and the exit status.

use crate::home;

#[test]
fn the_bare_call_prints_help_and_succeeds() {
    let done = home().call(&[]).ok();
    assert!(done.stdout().contains("Usage: sessile"));
    assert_eq!(done.stderr(), "");
}
