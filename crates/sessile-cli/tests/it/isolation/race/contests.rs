//! The tools: how each is set up, switched and asked. The first target is the user's own.

use testkit::Loopback;

use super::contest::{Contest, WORK};
use crate::home;

/// What kubectl learns about servers. An old one has no variable that moves it.
pub(super) const KUBECTL_CACHE: &[&str] = &[".kube/cache"];

impl Contest {
    /// A tool before anything is known of it.
    fn new(tool: &str, rounds: usize) -> Self {
        testkit::require_tool(tool);
        let home = home();
        std::fs::create_dir(home.path(WORK)).unwrap();
        Contest {
            home,
            servers: Vec::new(),
            rounds,
            switch: [Vec::new(), Vec::new()],
            probe: String::new(),
            says: ["", ""],
            variables: &[],
            declared: &[],
        }
    }

    /// With a home made by these commands.
    fn seeded(self, lines: &[String]) -> Self {
        for line in lines {
            self.bare(line).ok();
        }
        self
    }
}

/// For each agent one line.
fn lines(line: impl Fn(&str) -> String, targets: [&str; 2]) -> [Vec<String>; 2] {
    targets.map(|target| vec![line(target)])
}

pub(super) fn kubectl() -> Contest {
    let names = ["alpha", "beta"];
    let servers = names.map(Loopback::kubernetes);
    let mut seed = Vec::new();
    for (name, server) in names.iter().zip(&servers) {
        seed.push(format!("kubectl config set-cluster {name} --server=http://{}", server.address()));
        // Without a user: Debian 12's kubectl fails to write one.
        seed.push(format!("kubectl config set-context {name} --cluster={name}"));
    }
    let switch = lines(|name| format!("kubectl config use-context {name}"), names);
    seed.extend(switch[0].clone());
    Contest {
        servers: servers.into(),
        switch,
        probe: "kubectl get pods -o name".to_owned(),
        says: ["pod/pod-of-alpha", "pod/pod-of-beta"],
        declared: KUBECTL_CACHE,
        ..Contest::new("kubectl", 10)
    }
    .seeded(&seed)
}

pub(super) fn docker() -> Contest {
    let names = ["alpha", "beta"];
    let servers = names.map(Loopback::docker);
    let mut seed = Vec::new();
    for (name, server) in names.iter().zip(&servers) {
        seed.push(format!("docker context create {name} --docker host=tcp://{}", server.address()));
    }
    let switch = lines(|name| format!("docker context use {name}"), names);
    seed.extend(switch[0].clone());
    Contest {
        servers: servers.into(),
        switch,
        probe: "docker info --format {{.Name}}".to_owned(),
        says: names,
        ..Contest::new("docker", 10)
    }
    .seeded(&seed)
}

pub(super) fn git() -> Contest {
    let switch = lines(|name| format!("git config --global user.email {name}@x"), ["one", "two"]);
    let seed = ["git config --global user.name someone", "git init -q", &switch[0][0]].map(str::to_owned);
    Contest {
        switch,
        probe: "git var GIT_AUTHOR_IDENT".to_owned(),
        says: ["<one@x>", "<two@x>"],
        ..Contest::new("git", 10)
    }
    .seeded(&seed)
}

/// The token that it would send is who it is.
pub(super) fn gh() -> Contest {
    let contest = Contest {
        switch: lines(|name| format!("gh auth switch -h github.com -u {name}"), ["alice", "bob"]),
        probe: "gh auth token -h github.com".to_owned(),
        says: ["gho_alice", "gho_bob"],
        variables: &[("GH_NO_UPDATE_NOTIFIER", "1")],
        ..Contest::new("gh", 10)
    };
    contest.home.write(".config/gh/config.yml", "version: \"1\"\n");
    contest.home.write(
        ".config/gh/hosts.yml",
        "github.com:\n    git_protocol: https\n    users:\n        alice:\n            oauth_token: gho_alice\n        \
         bob:\n            oauth_token: gho_bob\n    user: alice\n    oauth_token: gho_alice\n",
    );
    contest
}

pub(super) fn npm() -> Contest {
    let contest = Contest {
        switch: lines(|name| format!("npm config set registry http://{name}.invalid/"), ["one", "two"]),
        probe: "npm config get registry".to_owned(),
        says: ["http://one.invalid/", "http://two.invalid/"],
        declared: &[".npm/_logs"],
        ..Contest::new("npm", 2)
    };
    // It would ask a registry whether there is a newer one.
    contest.home.write(".npmrc", "update-notifier=false\nregistry=http://one.invalid/\n");
    // The directory itself is made by the first call.
    std::fs::create_dir_all(contest.home.path(".npm")).unwrap();
    contest
}

pub(super) fn pip() -> Contest {
    let switch =
        lines(|name| format!("pip config set global.index-url http://{name}.invalid/"), ["one", "two"]);
    let seed = switch[0].clone();
    Contest {
        switch,
        probe: "pip config get global.index-url".to_owned(),
        says: ["http://one.invalid/", "http://two.invalid/"],
        ..Contest::new("pip", 2)
    }
    .seeded(&seed)
}

pub(super) fn aws() -> Contest {
    let server = Loopback::sts();
    let switch =
        lines(|end| format!("aws configure set aws_access_key_id AKIAAAAAAAAAAAAAAAA{end}"), ["1", "2"]);
    let probe = format!(
        "aws sts get-caller-identity --query Account --output text --endpoint-url http://{}",
        server.address()
    );
    let seed =
        ["aws configure set region us-east-1", "aws configure set aws_secret_access_key s", &switch[0][0]]
            .map(str::to_owned);
    Contest {
        servers: vec![server],
        switch,
        probe,
        says: ["111111111111", "222222222222"],
        ..Contest::new("aws", 3)
    }
    .seeded(&seed)
}

/// Both agents in one checkout. The selected workspace is kept there, and not in the home.
pub(super) fn terraform() -> Contest {
    let init = "terraform init -input=false";
    let select = |name: &str| format!("terraform workspace select {name}");
    let contest = Contest {
        switch: ["alpha", "beta"].map(|name| vec![init.to_owned(), select(name)]),
        probe: "terraform plan -no-color -input=false -lock=false".to_owned(),
        says: ["w = \"alpha\"", "w = \"beta\""],
        // It would ask whether there is a newer one.
        variables: &[("CHECKPOINT_DISABLE", "1")],
        declared: &["work/.terraform/sessile"],
        ..Contest::new("terraform", 2)
    };
    contest.home.write("work/main.tf", "output \"w\" {\n  value = terraform.workspace\n}\n");
    let make = |name: &str| format!("terraform workspace new {name}");
    contest.seeded(&[init.to_owned(), make("beta"), make("alpha")])
}
