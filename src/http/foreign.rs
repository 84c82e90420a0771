//! Requests that web pages of other hosts make a browser send.

use std::net::IpAddr;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::state::ServerState;
use crate::net::tls;
use jitney_broker::limits;

/// Refuses requests that a web page of another host makes a browser send. Where any key is accepted
/// (`--auth development`), such a page could use a broker on its reader's machine. The page is detected
/// by `Origin`; after DNS rebinding there is no `Origin`, and the page is detected by `Host`.
pub(crate) fn foreign(server: &ServerState, headers: &HeaderMap) -> Option<Response> {
    if !server.is_open {
        return None;
    }
    let text = if is_of_a_page(headers) {
        "Requests of web pages of other hosts are refused where any key is accepted (--auth development).\n".to_owned()
    } else {
        let name = foreign_name(headers, |name| server.tls.is_for(name))?;
        let name: String = name.chars().take(limits::LOGGED_MAX).collect();
        format!(
            "The host '{name}' is not known to be this broker, and any key is good here (--auth \
             development). Ask for localhost, an address, a name without a dot, or a name that the \
             broker's certificate is for: jitney certs --name makes one.\n"
        )
    };
    Some((StatusCode::FORBIDDEN, text).into_response())
}

fn is_of_a_page(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return false;
    };
    let origin = origin.to_str().unwrap_or_default();
    let host = origin.split_once("://").map_or("", |(_, host)| host);
    // The console's own requests have the host in both, and it is checked next.
    let own = headers.get(header::HOST);
    if own.is_some_and(|own| own.as_bytes() == host.as_bytes()) {
        return false;
    }
    let is_local = |name: &str| {
        let name = name.trim_matches(['[', ']']);
        name == "localhost" || name.parse().is_ok_and(|it: IpAddr| it.is_loopback())
    };
    !(is_local(host) || is_local(without_port(host)))
}

/// Returns the host that a request names, if it may be a domain of another owner: it has a dot,
/// and its suffix is neither reserved nor the service's. An address cannot be rebound.
fn foreign_name(headers: &HeaderMap, is_ours: impl Fn(&str) -> bool) -> Option<&str> {
    /// Suffixes of names that no attacker can register.
    const SAFE_ENDS: [&str; 3] = [
        ".servicebus.windows.net",
        ".servicebus.chinacloudapi.cn",
        ".servicebus.usgovcloudapi.net",
    ];
    // Browsers always send it.
    let host = headers.get(header::HOST)?.to_str().unwrap_or("?.?");
    let whole = host.trim_matches(['[', ']']);
    let name = without_port(host).trim_end_matches('.');
    let is_address = |text: &str| text.parse::<IpAddr>().is_ok();
    let lower = name.to_ascii_lowercase();
    let is_safe = tls::is_local_name(name)
        || is_address(whole)
        || is_address(name.trim_matches(['[', ']']))
        || SAFE_ENDS.iter().any(|end| lower.ends_with(end))
        || is_ours(name);
    (!is_safe).then_some(host)
}

fn without_port(host: &str) -> &str {
    host.rsplit_once(':').map_or(host, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_page_of_another_host_is_foreign_and_the_consoles_is_not() {
        for (origin, host, foreign) in [
            ("http://localhost:3000", "localhost:5300", false),
            ("http://[::1]:3000", "localhost:5300", false),
            ("http://jitney:5300", "jitney:5300", false),
            ("http://jitney:80", "jitney:5300", true),
            ("http://evil.example", "jitney:5300", true),
            ("http://localhost.evil.example", "localhost:5300", true),
            ("null", "localhost:5300", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            headers.insert(header::HOST, HeaderValue::from_static(host));
            assert_eq!(is_of_a_page(&headers), foreign, "{origin} {host}");
        }
        assert!(!is_of_a_page(&HeaderMap::new()));
    }

    #[test]
    fn a_host_that_another_may_own_is_foreign() {
        let is_ours = |name: &str| name == "bus.example.com";
        for (host, foreign) in [
            ("localhost", false),
            ("localhost:5300", false),
            ("LOCALHOST:5300", false),
            ("127.0.0.1:5300", false),
            ("10.1.2.3", false),
            ("[::1]:5300", false),
            ("[::1]", false),
            ("::1", false),
            ("jitney:5300", false),
            ("host.docker.internal:5300", false),
            ("ns.ServiceBus.windows.net", false),
            ("bus.example.com:443", false),
            ("evil.example", true),
            ("evil.example:5300", true),
            ("evil.example.:5300", true),
            ("127.0.0.1.evil.example", true),
            ("localhost.evil.example", true),
            ("servicebus.windows.net.evil.example", true),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            let found = foreign_name(&headers, is_ours);
            assert_eq!(found, foreign.then_some(host));
        }
        assert_eq!(foreign_name(&HeaderMap::new(), is_ours), None);
    }
}
