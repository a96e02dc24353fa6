//! The tools' own files arrive in a session as the tools understand them, however odd they are.

use testkit::{Call, Home};

use crate::isolation::run::kubeconfig;
use crate::{home, room};

fn run(home: &Home, flags: &[&str], command: &[&str]) -> Call {
    home.call(&["run"]).args(flags).args(&["--"]).args(command).with_tools()
}

const STRICT: &str = "[tools.kubectl]\ncontext = \"staging\"\nstrict = true\n";

mod kubeconfig_files {
    use super::*;

    /// kubectl switches in whichever file of a list names a current context: in a session there is one file.
    #[test]
    fn a_list_of_files_becomes_one_that_says_the_same() {
        let home = home();
        home.write("a/config", kubeconfig(&["one", "shared"]));
        home.write("b/config", kubeconfig(&["two", "shared"]).replace("127.0.0.1:1", "127.0.0.1:2"));
        let list = format!("{0}/a/config:{0}/missing::{0}/b/config", home.dir().display());
        let view = ["kubectl", "config", "view", "--raw", "-o", "json"];
        let wanted = home.tool("kubectl", &view[1..]).env("KUBECONFIG", &list).ok().json();
        let before = home.tree_of_people();
        let seen = run(&home, &["--session", "s1"], &view).env("KUBECONFIG", &list).ok().json();
        for part in ["contexts", "clusters", "users", "current-context"] {
            assert_eq!(seen[part], wanted[part], "{part}");
        }
        run(&home, &["--session", "s1"], &["kubectl", "config", "use-context", "two"]).ok();
        assert_eq!(home.tree_of_people(), before);
        let seen = run(&home, &["--session", "s1"], &["kubectl", "config", "current-context"]);
        assert_eq!(seen.env("KUBECONFIG", &list).ok().stdout(), "two\n");
    }

    #[test]
    fn paths_that_are_relative_to_the_file_still_lead_there() {
        let home = home();
        home.write(
            ".kube/config",
            "apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster:\n    \
             certificate-authority: certs/ca.pem\nusers:\n- name: u\n  user:\n    client-certificate: me.pem\n    \
             client-key: /abs/key.pem\n    exec: {apiVersion: v1, command: ./bin/login, args: [./stays]}\n\
             - name: v\n  user: {exec: {apiVersion: v1, command: gke-auth}}\n",
        );
        let view = ["kubectl", "config", "view", "--raw", "-o", "json"];
        let seen = run(&home, &[], &view).ok().json();
        let kube = home.path(".kube");
        let at = |path: &str| seen.pointer(path).unwrap().as_str().unwrap().to_owned();
        assert_eq!(
            at("/clusters/0/cluster/certificate-authority"),
            kube.join("certs/ca.pem").to_str().unwrap()
        );
        assert_eq!(at("/users/0/user/client-certificate"), kube.join("me.pem").to_str().unwrap());
        assert_eq!(at("/users/0/user/client-key"), "/abs/key.pem");
        assert_eq!(
            std::path::Path::new(&at("/users/0/user/exec/command")).components().collect::<Vec<_>>(),
            kube.join("bin/login").components().collect::<Vec<_>>()
        );
        assert_eq!(at("/users/0/user/exec/args/0"), "./stays");
        assert_eq!(at("/users/1/user/exec/command"), "gke-auth", "the program is found on PATH");
    }

    #[test]
    fn relative_list_resolves_in_the_working_directory() {
        let home = home();
        home.write(
            "w/one/config",
            kubeconfig(&["one"]).replace("{server", "{certificate-authority: ca.pem, server"),
        );
        home.write("w/two", kubeconfig(&["two"]));
        let view = ["kubectl", "config", "view", "--raw", "-o", "json"];
        let call = run(&home, &["--session", "s1"], &view).cwd("w").env("KUBECONFIG", "one/config:two");
        let seen = call.ok().json();
        assert_eq!(seen["contexts"].as_array().unwrap().len(), 2);
        let authority = &seen["clusters"][0]["cluster"]["certificate-authority"];
        assert_eq!(authority, home.path("w/one/ca.pem").to_str().unwrap());
        let original = &crate::shown(&home, "s1")["tools"];
        assert!(original.to_string().contains(home.path("w/one/config").to_str().unwrap()), "{original}");
    }

    #[test]
    fn number_like_and_empty_values_keep_their_type() {
        let home = home();
        home.write(
            ".config/sessile/contexts/c.toml",
            "[tools.kubectl]\ncontext = \"staging\"\nstrict = false\n",
        );
        home.write(
            ".kube/config",
            "apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user: {token: '1e3'}\n- name: \"0123\"\n  \
             user: {token: \"yes\", username: 'null'}\ncontexts:\n- name: staging\n  context: {cluster: c, \
             user: u}\n",
        );
        let view = ["kubectl", "config", "view", "--raw", "-o", "json"];
        let seen = run(&home, &["--context", "c"], &view).ok().json();
        // kubectl sorts them.
        assert_eq!(seen["users"][0]["name"], "0123");
        assert_eq!(seen["users"][0]["user"]["token"], "yes");
        assert_eq!(seen["users"][0]["user"]["username"], "null");
        assert_eq!(seen["users"][1]["user"]["token"], "1e3");
        home.write(".kube/config", kubeconfig(&["staging"]).replace("{token: t}", "{token: 1e3}"));
        let copy = run(&home, &["--context", "c"], &["sh", "-c", "cat \"$KUBECONFIG\""]).ok().stdout();
        assert!(copy.lines().any(|line| line.trim() == "token: 1e3"), "{copy}");
        home.write(
            ".kube/config",
            kubeconfig(&["staging"]).replace("users:\n- name: u\n  user: {token: t}\n", "users: null\n"),
        );
        let seen = run(&home, &["--context", "c"], &view).ok().json();
        assert_eq!(seen["users"], serde_json::Value::Null);
        assert_eq!(seen["current-context"], "staging");
    }

    #[test]
    fn broken_file_of_an_unbound_tool_is_left_to_the_tool() {
        let home = home();
        home.write(".config/sessile/contexts/c.toml", STRICT);
        home.write(".kube/config", "apiVersion: v1\n  : [unclosed\n\t- x\n");
        let done = run(&home, &["--session", "s1"], &["sh", "-c", "echo fine"]).ok();
        assert_eq!(done.stdout(), "fine\n");
        assert!(
            done.stderr().contains("kubectl: ") && done.stderr().contains(".kube/config"),
            "{}",
            done.told()
        );
        let same = run(&home, &["--session", "s1"], &["sh", "-c", "cat \"$KUBECONFIG\""]).ok().stdout();
        assert_eq!(same, home.read(".kube/config"));
        let error = run(&home, &["--context", "c", "-ojson"], &["true"]).run().exit(125).json_error();
        assert_eq!(error["code"], "TOOL_FILE", "{error}");
        assert!(error["message"].as_str().unwrap().contains("kube/config"), "{error}");
    }

    #[test]
    fn an_empty_one_and_none_at_all_are_empty_ones() {
        let home = home();
        let names = ["kubectl", "config", "get-contexts", "-o", "name"];
        assert_eq!(run(&home, &[], &names).ok().stdout(), "");
        for text in ["", "\n", "# only a comment\n", "---\n", "{}\n"] {
            home.write(".kube/config", text);
            let done = run(&home, &[], &names).ok();
            assert_eq!(done.stdout(), "", "{text:?}");
            run(&home, &[], &["kubectl", "config", "set-context", "x"]).ok();
        }
    }

    #[test]
    fn ten_thousand_contexts_and_five_megabytes_are_as_good_as_one() {
        let home = home();
        home.write(".config/sessile/contexts/c.toml", STRICT);
        let names: Vec<String> = (0..10_000).map(|number| format!("c{number}")).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.push("staging");
        let mut text = kubeconfig(&names);
        let certificate = "QUJD".repeat(1000);
        text.push_str("extra:\n");
        while text.len() < 5 * 1024 * 1024 {
            text.push_str(&format!("- certificate-authority-data: {certificate}\n"));
        }
        home.write(".kube/config", text);
        // Time of the processor, which does not depend on what else the machine does.
        let script = "TIMEFORMAT='cpu %U'; time \"$0\" run --session s1 --context c -- true";
        let done = home.tool("bash", &["-c", script, home.program().to_str().unwrap()]).with_tools().ok();
        let seconds: Option<f64> =
            done.stderr().lines().find_map(|line| line.strip_prefix("cpu ")?.parse().ok());
        assert!(seconds.is_some_and(|seconds| seconds < 20.0), "{}", done.told());
        let flags = ["--session", "s1", "--context", "c"];
        let told = run(&home, &flags, &["kubectl", "config", "get-contexts", "-o", "name"]).ok().stdout();
        assert_eq!(told, "staging\n");
    }

    #[test]
    fn linked_file_is_copied_and_a_pipe_does_not_block() {
        let home = home();
        home.write("dotfiles/kubeconfig", kubeconfig(&["dev"]));
        std::fs::create_dir(home.path(".kube")).unwrap();
        std::os::unix::fs::symlink("../dotfiles/kubeconfig", home.path(".kube/config")).unwrap();
        run(&home, &["--session", "s1"], &["kubectl", "config", "set-context", "x"]).ok();
        assert_eq!(home.read("dotfiles/kubeconfig"), kubeconfig(&["dev"]));
        std::fs::remove_file(home.path(".kube/config")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(home.path(".kube/config")).status();
        assert!(made.unwrap().success());
        assert_eq!(run(&home, &["--session", "s2"], &["echo", "fine"]).ok().stdout(), "fine\n");
        std::fs::remove_file(home.path(".kube/config")).unwrap();
        std::fs::create_dir(home.path(".kube/config")).unwrap();
        assert_eq!(run(&home, &["--session", "s3"], &["echo", "fine"]).ok().stdout(), "fine\n");
    }
}

#[test]
fn files_that_a_gitconfig_includes_are_still_found() {
    let home = home();
    home.write(
        ".gitconfig",
        "[include]\n\tpath = git/work.inc\n[includeIf \"gitdir:~/r/\"]\n\tpath = r.inc\n",
    );
    home.write("git/work.inc", "[user]\n\tname = included\n");
    home.write("r.inc", "[user]\n\temail = r@example.invalid\n");
    home.write(".config/git/config", "[alias]\n\tboth = status\n");
    let script =
        "git init -q r && cd r && git config user.name && git config user.email && git config alias.both";
    let told = run(&home, &[], &["sh", "-c", script]).ok().stdout();
    assert_eq!(told, "included\nr@example.invalid\nstatus\n");
}

/// Many machines that build things say so for everything.
#[test]
fn empty_variable_is_ignored_without_a_warning() {
    let home = home();
    home.write(".gitconfig", "[user]\n\tname = me\n");
    home.write(".kube/config", kubeconfig(&["dev"]));
    let script = "git config --global --list; kubectl config get-contexts -o name 2>/dev/null; git config --global a.b c";
    let mut call = run(&home, &["-q"], &["sh", "-c", script]);
    for name in ["GIT_CONFIG_GLOBAL", "KUBECONFIG", "NPM_CONFIG_USERCONFIG", "AWS_CONFIG_FILE"] {
        call = call.env(name, "/dev/null");
    }
    let done = call.ok();
    assert_eq!((done.stdout().as_str(), done.stderr().as_str()), ("", ""));
}

#[test]
fn docker_still_finds_its_plugins() {
    let home = home();
    let plugin = home.write(
        ".docker/cli-plugins/docker-hello",
        "#!/bin/sh\n[ \"$1\" = docker-cli-plugin-metadata ] && \
         echo '{\"SchemaVersion\":\"0.1.0\",\"Vendor\":\"t\",\"Version\":\"1\",\"ShortDescription\":\"d\"}' \
         && exit\necho hello from the plugin\n",
    );
    let made = std::process::Command::new("chmod").arg("+x").arg(plugin).status();
    assert!(made.unwrap().success());
    testkit::require_tool("docker");
    let told = run(&home, &["--session", "s1"], &["docker", "hello"]).ok().stdout();
    assert_eq!(told, "hello from the plugin\n");
    let link = room(&home, "s1").join("docker/cli-plugins");
    assert!(link.symlink_metadata().unwrap().file_type().is_symlink());
}
