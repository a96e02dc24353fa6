//! A route: what is answered, who may ask, and what the reference says of it. The router and the OpenAPI document are both
//! made from the list of these, so that neither has one that the other has not.

use axum::Extension;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};

use super::app::App;
use super::caller::Needs;
use crate::account::Scope;

/// Something that can be asked.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    /// What a token must allow.
    pub(crate) scopes: &'static [Scope],
    /// Whether no token is needed.
    pub(crate) is_open: bool,
    pub(crate) handler: MethodRouter<App>,
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    /// Parameters after the `?`, as names of the document's parameters.
    pub(crate) params: &'static [&'static str],
    /// The schema of the body.
    pub(crate) body: Option<&'static str>,
    /// The status, and the schema of what is answered.
    pub(crate) reply: (u16, Option<&'static str>),
    /// Whether it may be answered as a stream of events instead.
    pub(crate) may_stream: bool,
    /// The statuses of what can go wrong, besides what can always.
    pub(crate) refusals: &'static [u16],
}

pub(crate) const ANY: &[Scope] = &[];
pub(crate) const READ: &[Scope] = &[Scope::Read];
pub(crate) const WRITE: &[Scope] = &[Scope::Write];
pub(crate) const BOTH: &[Scope] = &[Scope::Read, Scope::Write];

impl Route {
    fn new<H, T>(method: Method, path: &'static str, scopes: &'static [Scope], handler: H) -> Self
    where
        H: Handler<T, App>,
        T: 'static,
    {
        // All methods used here are ones that the filter knows.
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::GET);
        let handler = on(filter, handler).layer(Extension(Needs(scopes)));
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
            reply: (200, None),
            may_stream: false,
            refusals: &[],
        }
    }

    pub(crate) fn get<H: Handler<T, App>, T: 'static>(
        path: &'static str,
        scopes: &'static [Scope],
        handler: H,
    ) -> Self {
        Route::new(Method::GET, path, scopes, handler)
    }

    pub(crate) fn post<H: Handler<T, App>, T: 'static>(
        path: &'static str,
        scopes: &'static [Scope],
        handler: H,
    ) -> Self {
        Route::new(Method::POST, path, scopes, handler)
    }

    pub(crate) fn put<H: Handler<T, App>, T: 'static>(
        path: &'static str,
        scopes: &'static [Scope],
        handler: H,
    ) -> Self {
        Route::new(Method::PUT, path, scopes, handler)
    }

    pub(crate) fn patch<H: Handler<T, App>, T: 'static>(
        path: &'static str,
        scopes: &'static [Scope],
        handler: H,
    ) -> Self {
        Route::new(Method::PATCH, path, scopes, handler)
    }

    pub(crate) fn delete<H: Handler<T, App>, T: 'static>(
        path: &'static str,
        scopes: &'static [Scope],
        handler: H,
    ) -> Self {
        Route::new(Method::DELETE, path, scopes, handler)
    }

    /// For anybody.
    pub(crate) fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

    /// What the reference calls it, and says of it.
    pub(crate) fn about(mut self, id: &'static str, summary: &'static str) -> Self {
        (self.id, self.summary) = (id, summary);
        self
    }

    pub(crate) fn params(mut self, params: &'static [&'static str]) -> Self {
        self.params = params;
        self
    }

    pub(crate) fn body(mut self, schema: &'static str) -> Self {
        self.body = Some(schema);
        self
    }

    pub(crate) fn replies(mut self, status: u16, schema: &'static str) -> Self {
        self.reply = (status, Some(schema));
        self
    }

    pub(crate) fn replies_empty(mut self, status: u16) -> Self {
        self.reply = (status, None);
        self
    }

    pub(crate) fn may_stream(mut self) -> Self {
        self.may_stream = true;
        self
    }

    pub(crate) fn refuses(mut self, statuses: &'static [u16]) -> Self {
        self.refusals = statuses;
        self
    }
}
