//! `sessile tool`: what is known about tools, who may say so, and whether it is true.

use crate::home;

/// A profile of a tool that is as good as `sh`.
fn profile(name: &str, variable: &str) -> String {
    format!(
        "name = \"{name}\"\nabout = \"a test\"\nprograms = [\"sh\"]\n\n[variables]\n{variable} = \"{{room}}/t/file\"\n\n\
         [race]\nstate = \"the word in ~/.word\"\n\
         switch = [\"sh\", \"-c\", \"echo w{{agent}} > ${{WORD_FILE:-$HOME/.word}}\"]\n\
         probe = [\"sh\", \"-c\", \"cat ${{WORD_FILE:-$HOME/.word}}\"]\nexpect = \"w{{agent}}\"\n"
    )
}

mod list {
    use super::*;

    #[test]
    fn at_least_thirty_tools_are_known_with_what_they_bind() {
        let listed = home().call(&["tool", "list", "--limit", "1000", "-ojson"]).ok().json();
        let listed = listed.as_array().unwrap();
        assert!(listed.len() >= 30, "{}", listed.len());
        for name in
            ["kubectl", "docker", "aws", "gcloud", "az", "gh", "glab", "terraform", "git", "npm", "ssh"]
        {
            assert!(listed.iter().any(|one| one["name"] == name), "{name}");
        }
        let kubectl = listed.iter().find(|one| one["name"] == "kubectl").unwrap();
        assert_eq!(kubectl["bind"], serde_json::json!(["context", "namespace", "kubeconfig", "strict"]));
        assert_eq!(kubectl["source"], "built in");
    }

    #[test]
    fn installed_lists_only_installed_tools() {
        let home = home();
        let listed = home.call(&["tool", "list", "--installed", "-ojson"]).env("PATH", "/nonexistent").ok();
        assert_eq!(listed.json(), serde_json::json!([]));
        let listed = home.call(&["tool", "list", "--installed"]).ok().stdout();
        assert!(listed.contains("git "), "{listed}");
    }
}

mod show {
    use super::*;

    #[test]
    fn show_lists_moved_bound_and_shared_state() {
        let home = home();
        let told = home.call(&["tool", "show", "kubectl"]).ok().stdout();
        for phrase in
            ["KUBECONFIG={room}/kube/config", "namespace: the namespace", "not isolated", "~/.kube/config"]
        {
            assert!(told.contains(phrase), "{phrase}: {told}");
        }
        let json = home.call(&["tool", "show", "kubectl", "-ojson"]).ok().json();
        assert_eq!(json["variables"]["KUBECONFIG"], "{room}/kube/config");
        let by_program = home.call(&["tool", "show", "kubens", "-ojson"]).ok().json();
        assert_eq!(by_program["name"], "kubectl");
    }

    #[test]
    fn unknown_tool_of_show_suggests_the_nearest() {
        let done = home().call(&["tool", "show", "kubctl", "-ojson"]).run().exit(5);
        assert_eq!(done.code(), "TOOL_NOT_FOUND");
        assert!(done.json_error()["hint"].as_str().unwrap().contains("kubectl"), "{}", done.told());
    }
}

mod profiles {
    use super::*;

    const NEW: &str =
        "name = \"new\"\nabout = \"a test\"\nprograms = [\"new\"]\n[variables]\nNEW_HOME = \"{room}/new\"\n";

    #[test]
    fn a_users_own_takes_the_place_of_a_built_in_one() {
        let home = home();
        let own = NEW.replace("\"new\"", "\"git\"").replace("NEW_HOME", "MY_GIT");
        let path = home.write(".config/sessile/tools/git.toml", own);
        let shown = home.call(&["tool", "show", "git", "-ojson"]).ok().json();
        assert_eq!(shown["source"], path.to_str().unwrap());
        let told = home.call(&["run", "--", "env"]).ok().stdout();
        assert!(told.contains("MY_GIT=") && !told.contains("GIT_CONFIG_GLOBAL="), "{told}");
    }

    #[test]
    fn a_projects_needs_trust_and_never_takes_the_place_of_another() {
        let home = home();
        home.write("p/.sessile/tools/new.toml", NEW);
        home.write(
            "p/.sessile/tools/git.toml",
            NEW.replace("\"new\"", "\"git\"").replace("NEW_HOME", "MY_GIT"),
        );
        let env = || home.call(&["run", "--", "env"]).cwd("p").ok();
        let done = env();
        assert!(!done.stdout().contains("NEW_HOME="), "{}", done.told());
        assert!(
            done.stderr().contains("is not trusted") && done.stderr().contains("sessile trust"),
            "{}",
            done.told()
        );
        home.call(&["trust", "p", "--yes"]).ok();
        let done = env();
        assert!(done.stdout().contains("NEW_HOME="), "{}", done.told());
        assert!(!done.stdout().contains("MY_GIT=") && done.stdout().contains("GIT_CONFIG_GLOBAL="));
        assert!(done.stderr().contains("already exists"), "{}", done.stderr());
        home.write("p/.sessile/tools/new.toml", NEW.replace("NEW_HOME", "PATH"));
        assert!(!env().stdout().contains("PATH=/home"), "a profile changed after trust is not trusted");
    }

    #[test]
    fn edits_of_several_files_in_one_directory_are_all_made() {
        let home = home();
        let edit = |file: &str, key: &str| {
            format!("{{ file = \"acme/{file}.json\", format = \"json\", set = \"{key}\" }}")
        };
        let edits = [edit("one", "account"), edit("two", "account"), edit("one", "owner")].join(", ");
        let profile = format!(
            "name = \"acme\"\nabout = \"a test\"\nprograms = [\"acme\"]\n\n[variables]\nACME_HOME = \"{{room}}/acme\"\n\n\
             [bind.account]\nabout = \"the account\"\nedit = [{edits}]\n"
        );
        home.write(".config/sessile/tools/acme.toml", profile);
        home.write(".config/sessile/contexts/staging.toml", "[tools.acme]\naccount = \"a\"\n");
        let script = "cat $ACME_HOME/one.json $ACME_HOME/two.json | tr -d ' \\n'";
        let flags = ["run", "--context", "staging", "--lock-timeout", "1s", "--", "sh", "-c", script];
        let told = home.call(&flags).ok().stdout();
        assert_eq!(told, "{\"account\":\"a\",\"owner\":\"a\"}{\"account\":\"a\"}");
    }

    #[test]
    fn a_broken_one_is_an_error_with_its_line() {
        let home = home();
        for (text, place, phrase) in [
            ("name = \"new\"\nabout = [\n", "new.toml:", ""),
            (&format!("{NEW}[[seed]]\nform = \"x\"\nto = \"y\"\n"), "new.toml:7", "form"),
            (&NEW.replace("about = \"a test\"", "about = 7"), "new.toml:2", "about"),
            (&format!("{NEW}[[seed]]\nfrom = \"x\"\nto = \"../y\"\n"), "new.toml:8", "inside the room"),
            (&NEW.replace("name = \"new\"", "name = \"other\""), "new.toml", "the file's name"),
            (&NEW.replace("NEW_HOME", "\"A-B\""), "new.toml:5", "named like a variable"),
        ] {
            home.write(".config/sessile/tools/new.toml", text);
            for args in [&["tool", "show", "new"][..], &["tool", "list"]] {
                let done = home.call(args).run();
                assert_ne!(done.status(), Some(0), "{text}");
                assert!(
                    done.stderr().contains(place) && done.stderr().contains(phrase),
                    "{text}\n{}",
                    done.told()
                );
            }
            home.call(&["run", "--", "true"]).run().exit(125);
        }
    }
}

mod check {
    use super::*;

    #[test]
    fn git_and_kubectl_are_isolated_on_this_machine() {
        let home = home();
        let before = home.tree_of_people();
        let checked = home.call(&["tool", "check", "git", "kubectl", "-ojson"]).with_tools().ok().json();
        for one in checked.as_array().unwrap() {
            assert_eq!(one["verdict"], "isolated", "{one}");
            assert_eq!(one["elsewhere"], serde_json::json!([]), "{one}");
        }
        assert_eq!(home.tree_of_people(), before);
        assert!(crate::live(&home).is_empty());
    }

    #[test]
    fn a_variable_that_the_tool_does_not_obey_is_found_out() {
        let home = home();
        home.write(".config/sessile/tools/word.toml", profile("word", "WORD_FILE"));
        let done = home.call(&["tool", "check", "word"]).ok();
        assert!(done.stdout().contains("word  isolated"), "{}", done.told());
        home.write(".config/sessile/tools/word.toml", profile("word", "WORD_FIEL"));
        let done = home.call(&["tool", "check", "word"]).run().exit(1);
        assert!(done.stdout().contains("NOT ISOLATED"), "{}", done.told());
        assert!(done.stdout().contains("session 1 selected \"w1\" but read \"w2\""), "{}", done.told());
        assert!(
            done.stdout().contains("new ~/.word (3 bytes)"),
            "the report counts every byte: {}",
            done.told()
        );
        assert!(!home.path(".word").exists(), "and none of it is here");
    }

    #[test]
    fn seed_command_that_fails_leaves_the_isolation_unproven() {
        let home = home();
        let seed = "seed = [[\"sh\", \"-c\", \"exit 3\"]]\n";
        home.write(".config/sessile/tools/word.toml", profile("word", "WORD_FILE") + seed);
        let done = home.call(&["tool", "check", "word", "-ojson"]).run().exit(4);
        assert_eq!(done.json()[0]["verdict"], "not proven");
        assert_eq!(done.json()[0]["findings"][0], "`sh -c exit 3` failed outside any session");
    }

    #[test]
    fn missing_or_unproven_tool_is_reported() {
        let home = home();
        let done =
            home.call(&["tool", "check", "heroku", "-ojson"]).env("PATH", "/nonexistent").run().exit(4);
        assert_eq!(done.json()[0]["verdict"], "not installed");
        home.call(&["tool", "check", "no-such-tool"]).run().exit(5);
    }
}
