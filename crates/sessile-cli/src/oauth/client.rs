//! Client of an authorization server, and the grants without a person.

use sessile::vault::Secret;

use super::fields::JsonFields;
use super::tokens::introspected_account;
use super::{OAuthError, Tokens};
use crate::http::{BufferedResponse, HttpClient, basic};

/// OAuth client: endpoints and identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OAuthClient {
    /// The token endpoint.
    pub(crate) token_url: String,
    /// Device authorization endpoint, if any.
    pub(crate) device_url: Option<String>,
    /// The client's name.
    pub(crate) client_id: String,
    /// Password, unless it is a public client.
    pub(crate) client_secret: Option<Secret>,
}

/// The fields of a request's form.
pub(super) type Form<'a> = Vec<(&'static str, &'a str)>;

impl OAuthClient {
    /// A token for the client itself (RFC 6749, 4.4).
    pub(crate) fn client_credentials(
        &self,
        http: &HttpClient,
        scopes: &[String],
        audience: Option<&str>,
        resource: Option<&str>,
    ) -> Result<Tokens, OAuthError> {
        let scope = scopes.join(" ");
        let mut form = wanted(&scope, audience, resource);
        form.push(("grant_type", "client_credentials"));
        self.ask(http, &self.token_url, form, None, Tokens::read)
    }

    /// A new access token (RFC 6749, 6). No scopes means those of before. The refresh token may be spent afterwards:
    /// if the answer holds another, only that one is good.
    pub(crate) fn refresh(
        &self,
        http: &HttpClient,
        refresh_token: &Secret,
        scopes: &[String],
        audience: Option<&str>,
        resource: Option<&str>,
    ) -> Result<Tokens, OAuthError> {
        let scope = scopes.join(" ");
        let mut form = wanted(&scope, audience, resource);
        form.extend([("grant_type", "refresh_token"), ("refresh_token", refresh_token.expose())]);
        self.ask(http, &self.token_url, form, Some(refresh_token), Tokens::read)
    }

    /// Gives a token back (RFC 7009).
    pub(crate) fn revoke(&self, http: &HttpClient, url: &str, token: &Secret) -> Result<(), OAuthError> {
        let mut form: Form<'_> = vec![("token", token.expose())];
        let answer = self.post(http, url, &mut form)?;
        match answer.status {
            200..300 => Ok(()),
            _ => judge(&answer).map(drop).map_err(|error| without_secrets(error, [token].into_iter())),
        }
    }

    /// Account of a token by introspection (RFC 7662); `None` if the server returns none.
    pub(crate) fn introspect(
        &self,
        http: &HttpClient,
        url: &str,
        token: &Secret,
    ) -> Result<Option<String>, OAuthError> {
        let form: Form<'_> = vec![("token", token.expose()), ("token_type_hint", "access_token")];
        self.ask(http, url, form, Some(token), |fields| Ok(introspected_account(fields)))
    }

    /// Sends a form as this client and reads the answer. An explanation that repeats a secret of the request is dropped.
    pub(super) fn ask<'a, T>(
        &'a self,
        http: &HttpClient,
        url: &str,
        mut form: Form<'a>,
        sent: Option<&Secret>,
        read: impl FnOnce(&JsonFields<'_>) -> Result<T, OAuthError>,
    ) -> Result<T, OAuthError> {
        let answer = self.post(http, url, &mut form)?;
        let done = judge(&answer).and_then(|fields| read(&fields));
        done.map_err(|error| without_secrets(error, sent.into_iter().chain(&self.client_secret)))
    }
}

impl OAuthClient {
    fn post<'a>(
        &'a self,
        http: &HttpClient,
        url: &str,
        form: &mut Form<'a>,
    ) -> Result<BufferedResponse, OAuthError> {
        let basic = self.client_secret.as_ref().map(|secret| basic(&self.client_id, secret.expose()));
        let mut headers = vec![("accept", "application/json")];
        match &basic {
            Some(basic) => headers.push(("authorization", basic)),
            // RFC 6749, 3.2.1: a public client names itself in the form.
            None => form.push(("client_id", &self.client_id)),
        }
        Ok(http.post_form(url, form, &headers)?)
    }
}

/// Requested scopes as a form field.
pub(super) fn wanted<'a>(scope: &'a str, audience: Option<&'a str>, resource: Option<&'a str>) -> Form<'a> {
    let scope = Some(scope).filter(|scope| !scope.is_empty());
    let fields = [("scope", scope), ("audience", audience), ("resource", resource)];
    fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Fields of a successful response. Some servers refuse with status 200, so the fields decide.
pub(super) fn judge(answer: &BufferedResponse) -> Result<JsonFields<'_>, OAuthError> {
    match answer.status {
        // Before the body is read: rate limiters in front of a server answer with pages of their own.
        429 => return Err(OAuthError::RateLimited { retry_after: answer.retry_after }),
        500.. => return Err(OAuthError::Server { status: answer.status }),
        _ => {}
    }
    let fields = JsonFields::read(&answer.body);
    if let Ok(fields) = &fields
        && let Ok(Some(error)) = fields.text("error")
    {
        let description = fields.text("error_description").ok().flatten();
        return Err(OAuthError::Refused { error, description });
    }
    match answer.status {
        200..300 => fields,
        status => Err(OAuthError::Server { status }),
    }
}

fn without_secrets<'a>(error: OAuthError, secrets: impl Iterator<Item = &'a Secret>) -> OAuthError {
    let OAuthError::Refused { mut error, mut description } = error else { return error };
    // The protocol's own words, which a short secret may be part of.
    let is_code = error.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    for secret in secrets.filter(|secret| !secret.is_empty()) {
        // A server may repeat the token that it rejects.
        description = description.filter(|text| !text.contains(secret.expose()));
        if !is_code && error.contains(secret.expose()) {
            error = "(reason withheld)".to_owned();
        }
    }
    OAuthError::Refused { error, description }
}
