//! Credentials, and what they open.

use std::ops::ControlFlow;

use sessile::vault::Secret;
use testkit::{AgentAuth, AgentOptions};

use super::partners::{ALL, send};
use super::says;
use crate::a2a::{
    A2aError, AgentClient, AnonymousAccess, ClientOptions, CredentialProvider, RequestCredential,
};
use crate::http::{HttpClient, TrustRoots, basic};

/// The same credential for all.
struct FixedCredential(RequestCredential);

impl CredentialProvider for FixedCredential {
    fn credentials_for(&self, _url: &str) -> Result<Vec<RequestCredential>, sessile::Error> {
        Ok(vec![self.0.clone()])
    }
}

#[test]
fn authenticated_caller_gets_the_extended_card() {
    let key = || Secret::new("s3cret");
    let header = |value: &str| RequestCredential::Header("Authorization".to_owned(), Secret::new(value));
    let ways = [
        (AgentAuth::Bearer, "s3cret", header("Bearer s3cret")),
        (AgentAuth::Basic, "ada:s3cret", header(&basic("ada", "s3cret"))),
        (
            AgentAuth::ApiKeyHeader("X-API-Key".to_owned()),
            "s3cret",
            RequestCredential::Header("X-API-Key".to_owned(), key()),
        ),
        (AgentAuth::ApiKeyQuery("k".to_owned()), "s3cret", RequestCredential::Query("k".to_owned(), key())),
        (AgentAuth::ApiKeyCookie("k".to_owned()), "s3cret", RequestCredential::Cookie("k".to_owned(), key())),
    ];
    for (number, (auth, secret, credential)) in ways.into_iter().enumerate() {
        let partner = ALL[number % 3];
        let guard =
            |options: &mut AgentOptions| *options = options.clone().guarded(auth.clone(), secret, "ada");
        partner.in_every_way(guard, &FixedCredential(credential), |agent| {
            let way = agent.interface.to_string();
            assert!(
                send(agent, &says("whoami")).text().replace(' ', "").contains("\"account\":\"ada\""),
                "{way}"
            );
            let mut count = 0;
            let heard = agent.stream(&says("stream 2"), &mut |_| {
                count += 1;
                ControlFlow::Continue(())
            });
            assert!(heard.is_ok() && count > 2, "{way}");
            let extended = agent.extended_card().unwrap_or_else(|error| panic!("{way}: {error:?}"));
            assert!(extended.skills.iter().any(|skill| skill.id == "secret"), "{way}");
            assert!(
                agent.card.extended && !agent.card.skills.iter().any(|skill| skill.id == "secret"),
                "{way}"
            );
            let (http, card) = (HttpClient::new(TrustRoots::System), agent.card.clone());
            let url = &agent.interface.url;
            let stranger =
                AgentClient::from_card(&http, url, &AnonymousAccess, ClientOptions::default(), card).unwrap();
            assert_eq!(stranger.card.schemes.len(), 1, "{way}");
            let told = stranger.send(&says("whoami")).unwrap_err();
            let is_told = matches!(&told, A2aError::Unauthorized { status: 401, challenge: Some(_), .. });
            assert!(is_told, "{way}: {told:?}");
        });
    }
}
