//! Authentication schemes of an agent card.

use std::collections::BTreeMap;

use serde_json::Value;

use super::field::string;

/// Authentication scheme under its name in the card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecurityScheme {
    /// Name in the card.
    pub name: String,
    /// Kind of the scheme.
    pub kind: SecuritySchemeKind,
}

/// Kind of an authentication scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecuritySchemeKind {
    /// `Authorization: Bearer`.
    Bearer,
    /// `Authorization: Basic`.
    Basic,
    /// `Authorization` with another scheme.
    Http(String),
    /// API key in a header, the query or a cookie.
    ApiKey {
        /// Location: `header`, `query` or `cookie`.
        place: String,
        /// Name of the header, parameter or cookie.
        name: String,
    },
    /// OAuth 2.
    OAuth2 {
        /// Flows by their names in version 1.0.
        flows: BTreeMap<String, OAuthFlow>,
        /// URL of the metadata of the authorization server.
        metadata_url: Option<String>,
    },
    /// OpenID Connect.
    OpenIdConnect {
        /// URL of the metadata of the authorization server.
        url: String,
    },
    /// Client certificate.
    MutualTls,
    /// Any other scheme.
    Other,
}

/// OAuth flow. The URLs are claims of the card.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthFlow {
    /// Authorization endpoint.
    pub authorization_url: Option<String>,
    /// Device authorization endpoint.
    pub device_authorization_url: Option<String>,
    /// Token endpoint.
    pub token_url: Option<String>,
    /// Scopes that can be requested.
    pub scopes: Vec<String>,
}

impl SecurityScheme {
    /// Schemes of a card of either version.
    pub fn all(card: &Value) -> Vec<Self> {
        let Some(schemes) = card.get("securitySchemes").and_then(Value::as_object) else { return Vec::new() };
        schemes
            .iter()
            .map(|(name, raw)| SecurityScheme { name: name.clone(), kind: SecuritySchemeKind::read(raw) })
            .collect()
    }
}

impl SecuritySchemeKind {
    fn read(raw: &Value) -> Self {
        // Version 1.0 wraps each scheme in its kind, version 0.3 has the kind as a field.
        for (key, kind) in [
            ("apiKeySecurityScheme", "apiKey"),
            ("httpAuthSecurityScheme", "http"),
            ("oauth2SecurityScheme", "oauth2"),
            ("openIdConnectSecurityScheme", "openIdConnect"),
            ("mtlsSecurityScheme", "mutualTLS"),
        ] {
            if let Some(inner) = raw.get(key) {
                return SecuritySchemeKind::of(kind, inner);
            }
        }
        SecuritySchemeKind::of(&string(raw, &["type"]).unwrap_or_default(), raw)
    }

    fn of(kind: &str, raw: &Value) -> Self {
        match kind {
            // The field is `location` in version 1.0 and `in` in version 0.3.
            "apiKey" => match (string(raw, &["location", "in"]), string(raw, &["name"])) {
                (Some(place), Some(name)) => {
                    SecuritySchemeKind::ApiKey { place: place.to_ascii_lowercase(), name }
                }
                _ => SecuritySchemeKind::Other,
            },
            // Names of schemes are case-insensitive (RFC 9110, 11.1).
            "http" => match string(raw, &["scheme"]).unwrap_or_default().to_ascii_lowercase().as_str() {
                "bearer" => SecuritySchemeKind::Bearer,
                "basic" => SecuritySchemeKind::Basic,
                other => SecuritySchemeKind::Http(other.to_owned()),
            },
            "oauth2" => {
                let flows = raw.get("flows").and_then(Value::as_object);
                let flows =
                    flows.into_iter().flatten().map(|(name, flow)| (name.clone(), OAuthFlow::read(flow)));
                let metadata_url = string(raw, &["oauth2MetadataUrl"]);
                SecuritySchemeKind::OAuth2 { flows: flows.collect(), metadata_url }
            }
            "openIdConnect" => match string(raw, &["openIdConnectUrl"]) {
                Some(url) => SecuritySchemeKind::OpenIdConnect { url },
                None => SecuritySchemeKind::Other,
            },
            "mutualTLS" => SecuritySchemeKind::MutualTls,
            _ => SecuritySchemeKind::Other,
        }
    }
}

impl OAuthFlow {
    fn read(raw: &Value) -> Self {
        let scopes = raw.get("scopes").and_then(Value::as_object);
        OAuthFlow {
            authorization_url: string(raw, &["authorizationUrl"]),
            device_authorization_url: string(raw, &["deviceAuthorizationUrl"]),
            token_url: string(raw, &["tokenUrl"]),
            scopes: scopes.into_iter().flatten().map(|(scope, _)| scope.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemes_of_both_versions_are_equal() {
        let flows = json!({"clientCredentials": {"tokenUrl": "https://id.example/t", "scopes": {"a": ""}}});
        let old = json!({"securitySchemes": {
            "b": {"type": "http", "scheme": "Bearer"}, "c": {"type": "http", "scheme": "basic"},
            "d": {"type": "apiKey", "in": "header", "name": "X-Key"}, "e": {"type": "oauth2", "flows": flows},
            "f": {"type": "openIdConnect", "openIdConnectUrl": "https://id.example/"}, "g": {"type": "mutualTLS"},
            "h": {"type": "telepathy"},
        }});
        let new = json!({"securitySchemes": {
            "b": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
            "c": {"httpAuthSecurityScheme": {"scheme": "basic"}},
            "d": {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}},
            "e": {"oauth2SecurityScheme": {"flows": flows}},
            "f": {"openIdConnectSecurityScheme": {"openIdConnectUrl": "https://id.example/"}},
            "g": {"mtlsSecurityScheme": {}}, "h": {"telepathySecurityScheme": {}},
        }});
        let all = SecurityScheme::all(&new);
        assert_eq!(all, SecurityScheme::all(&old));
        assert_eq!(all[2].kind, SecuritySchemeKind::ApiKey { place: "header".into(), name: "X-Key".into() });
        let SecuritySchemeKind::OAuth2 { flows, .. } = &all[3].kind else { panic!("{all:?}") };
        assert_eq!(flows["clientCredentials"].scopes, ["a"]);
        assert_eq!(all[6].kind, SecuritySchemeKind::Other);
    }
}
