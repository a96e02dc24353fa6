//! `hook install` and `hook remove`, the status of a shell, and the shell of the account.

use super::*;

#[test]
fn install_adds_the_line_once_and_remove_takes_it_out() {
    let own = "alias x=y\n# eval \"$(sessile hook bash)\" is not loaded here";
    for (shell, file) in [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish/config.fish")] {
        let home = home();
        home.write(file, own);
        home.call(&["hook", "install", shell]).run().exit(2);
        assert_eq!(home.read(file), own, "without a confirmation the file is unchanged");
        let told = home.call(&["hook", "install", shell, "--yes"]).ok().stdout();
        assert!(told.contains("sessile hook") && told.contains(file), "{told}");
        let line = home.read(file).lines().last().unwrap().to_owned();
        assert_eq!(home.read(file), format!("{own}\n{line}\n"));
        let told = home.call(&["hook", "install", shell]).ok().stdout();
        assert!(told.contains(&format!("{file}:3 already loads the hook")), "{told}");
        home.call(&["hook", "remove", shell, "--yes"]).ok();
        assert_eq!(home.read(file), format!("{own}\n"));
        home.call(&["hook", "remove", shell]).ok();
    }
}

#[test]
fn install_asks_on_a_terminal_and_the_next_shell_is_hooked() {
    let home = home_with_tools();
    home.write(".bashrc", "PS1='$ '\n");
    let mut path = std::ffi::OsString::from(home.program().parent().unwrap());
    path.push(":/usr/bin:/bin");
    let mut tty = home.call(&["hook", "install"]).env("SHELL", "/bin/bash").env("PATH", path).tty();
    let asked = tty.expect("?");
    assert!(asked.contains("eval \"$(sessile hook bash)\""), "{asked}");
    tty.type_line("y");
    tty.expect("added");
    assert_eq!(tty.finish().1, 0);
    let mut shell = HookedTty::open(&home, "bash");
    shell.run("sessile context use staging");
    assert_eq!(shell.kubectl(), "staging");
    shell.exit();
}

#[test]
fn status_reports_whether_the_shell_is_in_step() {
    for program in SHELLS {
        let home = home_with_tools();
        let set = if program == "fish" { "set -gx KUBECONFIG /own\n" } else { "\nexport KUBECONFIG=/own\n" };
        let mut shell = HookedTty::start(&home, program);
        load_hooks(&home, set);
        let told = plain(&shell.run("sessile status"));
        assert!(told.contains("shell     in step"), "{program}: {told}");
        shell.run("sessile context use staging");
        let told = plain(&shell.run("sessile status"));
        assert!(
            told.contains("shell     in step") && told.contains("context   staging"),
            "{program}: {told}"
        );
        shell.run(set.trim());
        let told = plain(&shell.run("sessile status"));
        // Each start-up file sets it; the one that this shell reads is named.
        let place = match program {
            "bash" => "~/.bashrc:2",
            "zsh" => "~/.zshrc:2",
            _ => "~/.config/fish/config.fish:1",
        };
        assert!(told.contains(&format!("KUBECONFIG overridden by {place}")), "{program}: {told}");
        shell.exit();
    }
    let home = home_with_tools();
    let (told, _) = home.shell().run("sessile status");
    assert!(plain(&told).contains("not hooked"), "{told}");
    assert!(!home.call(&["status"]).ok().stdout().contains("not hooked"), "a script has no shell");
}

#[test]
fn file_of_another_shell_is_named_only_if_this_shell_reads_it() {
    let home = home_with_tools();
    let mut shell = HookedTty::start(&home, "zsh");
    shell.run("sessile context use staging");
    shell.run("export KUBECONFIG=/own");
    home.write(".bashrc", "export KUBECONFIG=/old\n\nexport KUBECONFIG=/own\n");
    let told = plain(&shell.run("sessile status"));
    assert!(told.contains("KUBECONFIG overridden in this shell"), "{told}");
    home.write(".zshrc", format!("{}source ~/.bashrc\n", home.read(".zshrc")));
    let told = plain(&shell.run("sessile status"));
    assert!(told.contains("KUBECONFIG overridden by ~/.bashrc:3"), "the last line counts: {told}");
    shell.exit();
}

#[test]
fn shell_of_the_account_is_opened_without_the_variable() {
    let home = home();
    let mut shell = home.call(&["shell"]).no_env("SHELL").env("TERM", "dumb").tty();
    shell.expect("(sessile)");
    shell.type_line("printf '<%s>\\n' \"$0\"");
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let uid = home.tool("id", &["-u"]).ok().stdout();
    let line = passwd.lines().find(|line| line.split(':').nth(2) == Some(uid.trim())).unwrap();
    shell.expect(&format!("<{}>", line.rsplit(':').next().unwrap()));
    shell.type_line("exit");
    shell.finish();
}

#[test]
fn doctor_reports_the_hook_of_the_shell() {
    for program in SHELLS {
        let home = home_with_tools();
        let set = if program == "fish" { "set -gx KUBECONFIG /own\n" } else { "export KUBECONFIG=/own\n" };
        let mut shell = HookedTty::start(&home, program);
        shell.run("sessile context use staging");
        let told = plain(&shell.run("sessile doctor"));
        assert!(told.contains("shell hook: this shell is hooked and in step"), "{program}: {told}");
        load_hooks(&home, set);
        shell.run(set.trim());
        let told = plain(&shell.run("sessile doctor"));
        assert!(told.contains("not in step: KUBECONFIG overridden by ~/"), "{program}: {told}");
        assert!(told.contains("load the hook after it"), "{program}: {told}");
        shell.exit();
    }
    let home = home_with_tools();
    let told = plain(&home.shell().run("sessile doctor").0);
    assert!(told.contains("this shell is not hooked") && told.contains("sessile hook install"), "{told}");
    let told = home.call(&["doctor"]).run().stdout();
    assert!(told.contains(" shell hook\n"), "a script has no shell: {told}");
}
