//! Rate limits of requests without a valid token, by network address and in total.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::http::Extensions;

use super::router::PeerAddress;
use super::user_quota::RateBucket;
use crate::limits::{Limits, RateLimit};

/// Addresses that are tracked. Addresses beyond that share one bucket.
const ADDRESSES: usize = 4096;

/// Rate limits of requests without a valid token.
#[derive(Debug)]
pub(crate) struct AnonymousLimits {
    /// Logins that are begun.
    pub(crate) logins: PeerRateLimit,
    /// Attempts to collect the token of a login.
    pub(crate) polls: PeerRateLimit,
    /// Requests with an invalid token.
    pub(crate) invalid_tokens: PeerRateLimit,
}

impl AnonymousLimits {
    /// Limits of a service. Behind a proxy all requests come from one address, and only the total limit applies.
    pub(crate) fn new(limits: &Limits, behind_proxy: bool) -> Self {
        let paced = |each, all| PeerRateLimit {
            // Otherwise one client with invalid tokens would use up the limit of everybody behind the proxy.
            each: (!behind_proxy).then_some(each),
            seen: Mutex::default(),
            all: Mutex::new(RateBucket::new(all)),
        };
        AnonymousLimits {
            logins: paced(limits.login_each, limits.login_all),
            polls: paced(limits.poll_each, limits.poll_all),
            invalid_tokens: paced(limits.guess_each, limits.guess_all),
        }
    }
}

/// Rate limit for each address, and for all together.
#[derive(Debug)]
pub(crate) struct PeerRateLimit {
    each: Option<RateLimit>,
    seen: Mutex<HashMap<Option<IpAddr>, RateBucket>>,
    all: Mutex<RateBucket>,
}

impl PeerRateLimit {
    /// Charges one request. Over the rate limit, returns the milliseconds until the next one is allowed.
    pub(crate) fn take(&self, extensions: &Extensions) -> Result<Charge, i64> {
        let peer = extensions.get().map(|PeerAddress(peer)| network(peer.ip()));
        self.take_at(peer, Instant::now())
    }

    /// Refunds a request.
    pub(crate) fn refund(&self, Charge(peer): Charge) {
        if self.each.is_some() {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            // A bucket that was forgotten meanwhile was full.
            if let Some(bucket) = seen.get_mut(&peer) {
                bucket.refund();
            }
        }
        self.all.lock().unwrap_or_else(PoisonError::into_inner).refund();
    }

    fn take_at(&self, mut peer: Option<IpAddr>, now: Instant) -> Result<Charge, i64> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pace) = self.each else {
            self.all.lock().unwrap_or_else(PoisonError::into_inner).take(now)?;
            return Ok(Charge(peer));
        };
        if seen.len() >= ADDRESSES && !seen.contains_key(&peer) {
            // A full bucket is the same as a new one, so forgetting it forgives nothing.
            seen.retain(|_, bucket| !bucket.is_full(now));
            if seen.len() >= ADDRESSES {
                // A flood of spoofed or rotating addresses must not grow the map without bound.
                peer = None;
            }
        }
        let bucket = seen.entry(peer).or_insert_with(|| RateBucket::new(pace));
        bucket.take(now)?;
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner).take(now);
        // A refusal by the total limit must not use up what the address has.
        if all.is_err() {
            bucket.refund();
        }
        all.map(|()| Charge(peer))
    }
}

/// A request that was charged to an address, and can be refunded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Charge(Option<IpAddr>);

/// Network of an address: one client has a whole /64 of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        // Providers assign a /64 to one customer, who could otherwise take a new address for each request.
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & (!0 << 64)).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn paced(each: Option<RateLimit>, all: RateLimit) -> PeerRateLimit {
        PeerRateLimit { each, seen: Mutex::default(), all: Mutex::new(RateBucket::new(all)) }
    }

    #[test]
    fn limit_of_one_address_leaves_others_theirs() {
        let now = Instant::now();
        let wide = RateLimit { rate: 1000.0, burst: 1000.0 };
        let paced = paced(Some(RateLimit { rate: 1.0, burst: 2.0 }), wide);
        let of = |text: &str| Some(network(text.parse().unwrap()));
        let take = |text: &str| paced.take_at(of(text), now).is_ok();
        assert_eq!([take("10.0.0.1"), take("10.0.0.1"), take("10.0.0.1")], [true, true, false]);
        assert!(take("10.0.0.2"));
        assert!(!take("::ffff:10.0.0.1"), "the mapped address is the same address");
        assert_eq!([take("2001:db8::1"), take("2001:db8::2"), take("2001:db8::3")], [true, true, false]);
        assert!(take("2001:db8:0:1::1"));
        assert!(paced.take_at(of("10.0.0.1"), now + Duration::from_secs(1)).is_ok());
    }

    #[test]
    fn total_limit_and_number_of_addresses_are_bounded() {
        let now = Instant::now();
        let wide = RateLimit { rate: 1.0, burst: 1e9 };
        let many = paced(Some(RateLimit { rate: 0.001, burst: 1.0 }), wide);
        let address = |number: u32| Some(IpAddr::V4(number.into()));
        for number in 0..10_000 {
            let _ = many.take_at(address(number), now);
        }
        assert!(many.seen.lock().unwrap().len() <= ADDRESSES + 1);
        assert!(many.take_at(address(20_000), now).is_err(), "the remaining addresses share one limit");
        assert!(many.take_at(address(20_000), now + Duration::from_secs(2000)).is_ok());
        assert!(many.seen.lock().unwrap().len() < 10, "idle addresses are dropped");
        let few = paced(None, RateLimit { rate: 1.0, burst: 1.0 });
        assert!(few.take_at(address(1), now).is_ok());
        assert_eq!(few.take_at(address(2), now), Err(1000));
    }

    #[test]
    fn refund_is_limited_to_the_charge() {
        let now = Instant::now();
        let pace = RateLimit { rate: 0.001, burst: 1.0 };
        let address = |number: u32| Some(IpAddr::V4(number.into()));
        for paced in [paced(Some(pace), pace), paced(None, pace)] {
            let charge = paced.take_at(address(1), now).unwrap();
            assert!(paced.take_at(address(1), now).is_err());
            assert!(paced.take_at(address(2), now).is_err(), "all together have one");
            paced.refund(charge);
            assert!(paced.take_at(address(2), now).is_ok(), "a refusal takes nothing from the address");
            assert!(paced.take_at(address(1), now).is_err());
        }
    }
}
