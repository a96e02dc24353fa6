//! `session gc --install-timer`.

use std::process::Command;

use crate::home;

#[test]
fn timer_units_are_valid_for_systemd_and_removed_again() {
    let home = home();
    let units = home.path(".config/systemd/user");
    let printed = home.call(&["session", "gc", "--install-timer", "--dry-run"]).ok().stdout();
    assert!(!units.exists(), "a dry run writes nothing");
    let done = home.call(&["session", "gc", "--install-timer"]).ok();
    assert!(done.stdout().contains("sessile-gc.timer"), "{}", done.told());
    let service = std::fs::read_to_string(units.join("sessile-gc.service")).unwrap();
    let timer = std::fs::read_to_string(units.join("sessile-gc.timer")).unwrap();
    assert!(printed.contains(&service) && printed.contains(&timer), "{printed}");
    // There is no user manager in a test, so the program says what to run.
    assert!(done.stderr().contains("systemctl --user enable --now sessile-gc.timer"), "{}", done.told());
    if let Ok(version) = Command::new("systemd-analyze").arg("--version").output()
        && version.status.success()
    {
        let files = ["sessile-gc.service", "sessile-gc.timer"].map(|name| units.join(name));
        let mut verify = Command::new("systemd-analyze");
        verify.args(["--user", "verify"]).args(&files).env("XDG_RUNTIME_DIR", home.path(""));
        let done = verify.output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success() && !told.contains("sessile-gc"), "{told}");
    }
    let line = service.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let (program, arguments) = line.strip_prefix('"').unwrap().split_once("\" ").unwrap();
    let ran = Command::new(program)
        .args(arguments.split(' '))
        .env_clear()
        .env("HOME", home.path(""))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let removed = home.call(&["session", "gc", "--remove-timer", "-ojson"]).ok().json();
    assert_eq!(removed["removed"].as_array().unwrap().len(), 2, "{removed}");
    assert_eq!(std::fs::read_dir(&units).unwrap().count(), 0);
    let again = home.call(&["session", "gc", "--remove-timer", "-ojson"]).ok().json();
    assert!(again["removed"].as_array().unwrap().is_empty());
}

#[test]
fn timer_service_has_the_variables_of_the_state_quoted() {
    let home = home();
    let state = home.path("a b%c$d\"e");
    std::fs::create_dir_all(&state).unwrap();
    let call = home.call(&["session", "gc", "--install-timer", "--dry-run", "-ojson"]);
    let json = call.env("XDG_STATE_HOME", state.to_str().unwrap()).ok().json();
    let service = json["units"][0]["text"].as_str().unwrap();
    let expected = format!("Environment=\"XDG_STATE_HOME={}/a b%%c$d\\\"e\"\n", home.path("").display());
    assert!(service.contains(&expected.replace("//", "/")), "{service}\n{expected}");
}
