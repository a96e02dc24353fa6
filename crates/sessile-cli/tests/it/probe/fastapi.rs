//! The sample of a service in Python over our own.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use testkit::Home;

use super::service::ProbedService;
use crate::{home, repository};

struct App {
    child: Child,
    url: String,
}

impl App {
    fn start(service: &ProbedService) -> Self {
        let mut child = Command::new(python())
            .arg(repository::root().join("examples/fastapi/app.py"))
            .args(["--service", &service.url, "--token-file", &service.tokens, "--port", "0"])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        App { child, url: url.trim().to_owned() }
    }

    fn say(&self, user: &str, message: &str) -> (u16, Value) {
        let body = json!({ "message": message }).to_string();
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let request = agent.post(format!("{}/chat", self.url)).header("x-user", user);
        let mut answer = request.content_type("application/json").send(body).unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        (answer.status().as_u16(), serde_json::from_str(&text).unwrap())
    }

    fn messages(&self, user: &str) -> Vec<Value> {
        let mut answer = ureq::get(format!("{}/messages", self.url)).header("x-user", user).call().unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        let all: Value = serde_json::from_str(&text).unwrap();
        all["messages"].as_array().unwrap().clone()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn python() -> PathBuf {
    let entry = "test-tools/fastapi/bin/python";
    let tested = std::env::current_exe().unwrap();
    let found = tested.ancestors().map(|dir| dir.join(entry)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("FastAPI not found in target/{entry}; scripts/test installs it"))
}

fn probe(home: &Home, url: &str, flags: &[&str]) -> Value {
    let template = repository::root().join("examples/fastapi/chat.toml");
    let template = template.to_str().unwrap();
    let args = ["probe", url, "-ojson", "--protocol", "http", "--template", template];
    home.call(&args).args(flags).run().exit(0).json()
}

#[test]
fn python_sample_keeps_users_apart() {
    let home = home();
    let service = ProbedService::start(&home, 1, &[]);
    let (one, two) = (App::start(&service), App::start(&service));
    let report = probe(&home, &one.url, &["--users", "8", "--turns", "5"]);
    assert_eq!((&report["verdict"], &report["answered"]), (&json!("clean"), &json!(48)), "{report}");
    assert_eq!((&report["replies"]["judged"], &report["histories"]["judged"]), (&json!(true), &json!(true)));

    // One user at two processes at once: every turn sees all before it.
    std::thread::scope(|threads| {
        for number in 1..=8 {
            let app = if number % 2 == 0 { &one } else { &two };
            threads.spawn(move || {
                let (status, reply) = app.say("ann", &format!("code word number {number} is w{number}"));
                assert_eq!(status, 200, "{reply}");
            });
        }
    });
    let messages = one.messages("ann");
    assert_eq!(messages.len(), 16);
    for (at, pair) in messages.chunks(2).enumerate() {
        assert_eq!((&pair[0]["role"], &pair[1]["role"]), (&json!("user"), &json!("assistant")));
        assert_eq!(pair[1]["content"].as_str().unwrap().split(' ').count(), at + 1, "{messages:?}");
    }
    // A model that fails leaves nothing behind, and nobody waits for it.
    assert_eq!(two.say("ann", "Fail.").0, 502);
    assert_eq!(two.messages("ann"), messages);
    assert_eq!(one.say("bob", "hello").1, json!({ "reply": "I know no code words." }));
}
