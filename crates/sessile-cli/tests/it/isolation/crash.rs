//! A `run` killed at any instant of preparing a session spoils nothing: the next one works.

use testkit::Home;

use crate::durability::crash::Killer;
use crate::isolation::run::kubeconfig;
use crate::{home, live};

/// Fewer than for one file: each takes a whole room.
fn rounds() -> usize {
    std::env::var("SESSILE_TEST_KILLS").map_or(12, |text| text.parse::<usize>().unwrap() / 4)
}

fn furnished() -> Home {
    let home = home();
    let names: Vec<String> = (0..300).map(|number| format!("c{number}")).collect();
    home.write(".kube/config", kubeconfig(&names.iter().map(String::as_str).collect::<Vec<_>>()));
    home.write(".gitconfig", "[user]\n\tname = me\n");
    for number in 0..100 {
        home.write(format!(".docker/contexts/meta/{number}/meta.json"), "{}");
    }
    home.write(".config/sessile/contexts/c.toml", "[tools.kubectl]\ncontext = \"c7\"\nstrict = true\n");
    home
}

#[test]
fn after_a_kill_in_the_middle_of_preparing_the_next_run_works() {
    let home = furnished();
    let first = |session: &str| home.call(&["run", "--session", session, "--context", "c", "--", "true"]);
    let mut killer = Killer::new(0x5e55_11e0a, ["w1", "w2"].map(first));
    let before = home.tree_of_people();
    let script = "kubectl config get-contexts -o name; kubectl config current-context; git config user.name
        ls \"$DOCKER_CONFIG/contexts/meta\" | wc -l";
    let rounds = rounds();
    for number in 0..rounds {
        let name = format!("s{number}");
        killer.kill(first(&name));
        let flags = ["run", "--session", &name, "--context", "c", "--lock-timeout", "1s"];
        let told = home.call(&flags).args(&["--", "sh", "-c", script]).ok().stdout();
        assert_eq!(told.split_whitespace().collect::<Vec<_>>(), ["c7", "c7", "me", "100"], "round {number}");
    }
    killer.assert_it_was_a_fight(rounds);
    assert_eq!(home.tree_of_people(), before);
    home.call(&["session", "gc"]).ok();
    home.call(&["doctor"]).ok();
    assert_eq!(live(&home).len(), rounds + 2);
}
