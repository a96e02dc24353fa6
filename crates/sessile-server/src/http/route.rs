//! Route: handler, required scopes and reference text. The router and the OpenAPI document are generated from one
//! list of routes, so that they cannot differ.

use axum::Extension;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::JsonSchema;

use super::app::AppState;
use super::caller::RequiredScopes;
use super::openapi::SchemaOf;
use super::parameters::Parameter;
use crate::account::TokenScope;

/// Route of the API.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// Scopes that a token must have.
    pub(crate) scopes: &'static [TokenScope],
    /// Whether no token is needed.
    pub(crate) is_open: bool,
    pub(crate) handler: MethodRouter<AppState>,
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    /// Parameters besides those of the path and those that every read or write takes.
    pub(crate) params: &'static [&'static Parameter],
    /// Type of the request's body.
    pub(crate) body: Option<SchemaOf>,
    /// Status and body of the response on success.
    pub(crate) response: (u16, ResponseBody),
    /// Whether it may be answered as a stream of events instead.
    pub(crate) may_stream: bool,
    /// Whether only a token with the scope `read` gets the body of the response.
    pub(crate) needs_read_for_body: bool,
    /// The statuses of what can go wrong, besides what can always.
    pub(crate) refusals: &'static [u16],
}

/// Body of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ResponseBody {
    Empty,
    Json(SchemaOf),
    EventStream,
    Text,
}

pub(crate) const ANY: &[TokenScope] = &[];
pub(crate) const READ: &[TokenScope] = &[TokenScope::Read];
pub(crate) const WRITE: &[TokenScope] = &[TokenScope::Write];
pub(crate) const BOTH: &[TokenScope] = &[TokenScope::Read, TokenScope::Write];

impl Route {
    fn new<H, T>(method: Method, path: &'static str, scopes: &'static [TokenScope], handler: H) -> Self
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        // All methods used here are ones that the filter knows.
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        let handler = on(filter, handler).layer(Extension(RequiredScopes(scopes)));
        Route {
            method,
            path,
            scopes,
            is_open: false,
            handler,
            id: "",
            summary: "",
            params: &[],
            body: None,
            response: (200, ResponseBody::Empty),
            may_stream: false,
            needs_read_for_body: false,
            refusals: &[],
        }
    }

    pub(crate) fn get<H: Handler<T, AppState>, T: 'static>(
        path: &'static str,
        scopes: &'static [TokenScope],
        handler: H,
    ) -> Self {
        Route::new(Method::GET, path, scopes, handler)
    }

    pub(crate) fn post<H: Handler<T, AppState>, T: 'static>(
        path: &'static str,
        scopes: &'static [TokenScope],
        handler: H,
    ) -> Self {
        Route::new(Method::POST, path, scopes, handler)
    }

    pub(crate) fn put<H: Handler<T, AppState>, T: 'static>(
        path: &'static str,
        scopes: &'static [TokenScope],
        handler: H,
    ) -> Self {
        Route::new(Method::PUT, path, scopes, handler)
    }

    pub(crate) fn patch<H: Handler<T, AppState>, T: 'static>(
        path: &'static str,
        scopes: &'static [TokenScope],
        handler: H,
    ) -> Self {
        Route::new(Method::PATCH, path, scopes, handler)
    }

    pub(crate) fn delete<H: Handler<T, AppState>, T: 'static>(
        path: &'static str,
        scopes: &'static [TokenScope],
        handler: H,
    ) -> Self {
        Route::new(Method::DELETE, path, scopes, handler)
    }

    /// For anybody.
    pub(crate) fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

    /// Operation id and summary in the reference.
    pub(crate) fn about(mut self, id: &'static str, summary: &'static str) -> Self {
        (self.id, self.summary) = (id, summary);
        self
    }

    pub(crate) fn params(mut self, params: &'static [&'static Parameter]) -> Self {
        self.params = params;
        self
    }

    /// The request has a body of this type.
    pub(crate) fn body<T: JsonSchema>(mut self) -> Self {
        self.body = Some(SchemaOf::of::<T>());
        self
    }

    /// The response has a body of this type.
    pub(crate) fn replies<T: JsonSchema>(self, status: u16) -> Self {
        self.replies_with(status, ResponseBody::Json(SchemaOf::of::<T>()))
    }

    pub(crate) fn replies_with(mut self, status: u16, body: ResponseBody) -> Self {
        self.response = (status, body);
        self
    }

    pub(crate) fn may_stream(mut self) -> Self {
        self.may_stream = true;
        self
    }

    /// Marks a response as data that a token without the scope `read` does not get: it gets 204 instead.
    pub(crate) fn needs_read_for_body(mut self) -> Self {
        self.needs_read_for_body = true;
        self
    }

    pub(crate) fn refuses(mut self, statuses: &'static [u16]) -> Self {
        self.refusals = statuses;
        self
    }
}
