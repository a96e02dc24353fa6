//! `hook install` and `hook remove`, the status of a shell, and the shell of the account.

use super::*;

#[test]
fn install_adds_the_line_once_and_remove_takes_it_out() {
    let own = "alias x=y\n# eval \"$(sessile hook bash)\" is not loaded here";
    for (shell, file) in [("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", ".config/fish/config.fish")] {
        let home = home();
        home.write(file, own);
        home.call(&["hook", "install", shell]).run().exit(2);
        assert_eq!(home.read(file), own, "nobody was asked");
        let told = home.call(&["hook", "install", shell, "--yes"]).ok().stdout();
        assert!(told.contains("sessile hook") && told.contains(file), "{told}");
        let line = home.read(file).lines().last().unwrap().to_owned();
        assert_eq!(home.read(file), format!("{own}\n{line}\n"));
        let told = home.call(&["hook", "install", shell]).ok().stdout();
        assert!(told.contains(&format!("{file}:3 loads the hook already")), "{told}");
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
    let mut tty = shell_call(&home, "bash", &[]).tty();
    tty.expect("$ ");
    let mut shell = HookedTty { tty, program: "bash" };
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
        let place = match program {
            "bash" => "~/.bashrc:2",
            "zsh" => "~/.zshrc:2",
            _ => "~/.config/fish/config.fish:1",
        };
        // The first file that sets it is named; here it is bash's for the shells that read it the same way.
        let place = if program == "zsh" { "~/.bashrc:2" } else { place };
        assert!(told.contains("KUBECONFIG overridden by ~/"), "{program}: {told}");
        assert!(program == "fish" || told.contains(place), "{program}: {told}");
        shell.exit();
    }
    let home = home_with_tools();
    let (told, _) = home.shell().run("sessile status");
    assert!(plain(&told).contains("not hooked"), "{told}");
    assert!(!home.call(&["status"]).ok().stdout().contains("not hooked"), "a script has no shell");
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
