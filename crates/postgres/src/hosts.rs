//! The hosts of a store's URL. They are tried one after the other until one takes writes.
//!
//! Each has a time of its own. The time-out of tokio-postgres is one of TCP only: a host that accepts a connection and answers nothing,
//! as a frozen one does, would use up the time of all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{Client, Config, Connection, Socket};

use super::StoreError;
use crate::limits;

/// The hosts of a store, with how each is connected to.
#[derive(Debug)]
pub(crate) struct Hosts {
    each: Vec<Config>,
    /// How long each may take, unless it is avoided.
    wait: Duration,
    /// One that takes as long to say that it cannot be connected to counts as one that did not answer: so does the system where a
    /// machine is gone.
    slow: Duration,
    made: Instant,
    /// Until when each is tried after the others and for a shorter time, because it did not answer: milliseconds since these were made.
    avoided: Vec<AtomicU64>,
}

impl Hosts {
    /// Takes the settings of all.
    pub(crate) fn new(all: &Config) -> Self {
        let count = all.get_hosts().len();
        let fits = |others: usize| others == 0 || others == count;
        let each = if fits(all.get_hostaddrs().len())
            && (fits(all.get_ports().len()) || all.get_ports().len() == 1)
        {
            (0..count).map(|at| of_host(all, at)).collect()
        } else {
            // The connection says what is wrong with these.
            vec![all.clone()]
        };
        Self {
            wait: wait(each.len()),
            slow: limits::STORE_HOST_SLOW.as_duration(),
            made: Instant::now(),
            avoided: each.iter().map(|_| AtomicU64::new(0)).collect(),
            each,
        }
    }

    /// Connects to the first host that takes writes.
    ///
    /// # Errors
    ///
    /// That of the host that was tried last.
    pub(crate) async fn connect<T>(
        &self,
        tls: &T,
    ) -> Result<(Client, Connection<Socket, T::Stream>), StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone,
        T::TlsConnect: Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let mut last = None;
        let mut has_other = false;
        for (config, avoided) in self.order(self.now()) {
            let began = Instant::now();
            let is_avoided = self.now() < avoided.load(Ordering::Relaxed);
            // If all are avoided, none is better than another.
            let wait = if is_avoided && has_other {
                self.wait.min(limits::STORE_HOST_WAIT_MIN.as_duration())
            } else {
                self.wait
            };
            has_other |= !is_avoided;
            let place = || place(config);
            let error = match timeout(wait, config.connect(tls.clone())).await {
                Ok(Ok(connected)) => {
                    avoided.store(0, Ordering::Relaxed);
                    return Ok(connected);
                }
                Ok(Err(source)) => StoreError::Database {
                    place: place(),
                    what: "connect",
                    source,
                },
                Err(_) => StoreError::slow(&place(), "connect", wait),
            };
            // Not for longer, because it had less time: when that is over, it has all of it.
            if !is_avoided && self.slow.min(wait) <= began.elapsed() {
                let span = limits::STORE_HOST_AVOIDED.as_millis();
                let span = u64::try_from(span).unwrap_or_default();
                avoided.store(self.now() + span, Ordering::Relaxed);
            }
            last = Some(error);
        }
        Err(last.expect("the URL of a store names a host"))
    }

    /// Returns the time since these were made, in milliseconds.
    fn now(&self) -> u64 {
        u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns the hosts in the order of the URL, after which come those that did not answer of late: a session of the beats must not
    /// wait for one of these.
    fn order(&self, now: u64) -> Vec<(&Config, &AtomicU64)> {
        let mut order: Vec<_> = self.each.iter().zip(&self.avoided).collect();
        order.sort_by_key(|(_, avoided)| now < avoided.load(Ordering::Relaxed));
        order
    }
}

/// Returns how long each of so many hosts may take: all of them together as long as an answer of the store, if these are not too many.
fn wait(count: usize) -> Duration {
    let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
    let share = limits::STORE_ANSWER_WAIT.as_duration() / count;
    share.max(limits::STORE_HOST_WAIT_MIN.as_duration())
}

/// Returns the settings of one of several hosts.
fn of_host(all: &Config, at: usize) -> Config {
    let mut one = Config::new();
    match all.get_hosts().get(at) {
        Some(Host::Tcp(name)) => one.host(name),
        Some(Host::Unix(path)) => one.host_path(path),
        None => &mut one,
    };
    if let Some(address) = all.get_hostaddrs().get(at) {
        one.hostaddr(*address);
    }
    let ports = all.get_ports();
    if let Some(port) = ports.get(at).or_else(|| ports.first()) {
        one.port(*port);
    }
    if let Some(user) = all.get_user() {
        one.user(user);
    }
    if let Some(password) = all.get_password() {
        one.password(password);
    }
    if let Some(name) = all.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = all.get_options() {
        one.options(options);
    }
    if let Some(name) = all.get_application_name() {
        one.application_name(name);
    }
    if let Some(wait) = all.get_connect_timeout() {
        one.connect_timeout(*wait);
    }
    if let Some(wait) = all.get_tcp_user_timeout() {
        one.tcp_user_timeout(*wait);
    }
    if let Some(interval) = all.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = all.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.keepalives(all.get_keepalives());
    one.keepalives_idle(all.get_keepalives_idle());
    one.ssl_mode(all.get_ssl_mode());
    one.ssl_negotiation(all.get_ssl_negotiation());
    one.channel_binding(all.get_channel_binding());
    one.target_session_attrs(all.get_target_session_attrs());
    one.load_balance_hosts(all.get_load_balance_hosts());
    one
}

/// Returns the hosts and the database, without the password.
pub(crate) fn place(config: &Config) -> String {
    let hosts = config.get_hosts().iter().enumerate().map(|(at, host)| {
        let ports = config.get_ports();
        let port = ports.get(at).or_else(|| ports.first()).unwrap_or(&5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(path) => path.display().to_string(),
        }
    });
    let hosts: Vec<String> = hosts.collect();
    let database = config.get_dbname().unwrap_or("postgres");
    format!("{}/{database}", hosts.join(","))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_postgres::NoTls;

    use super::*;

    /// Settings as a store has them.
    fn hosts(addresses: &[SocketAddr]) -> Hosts {
        let texts = addresses.iter().map(ToString::to_string);
        let texts: Vec<String> = texts.collect();
        let url = format!(
            "postgres://u:secret@{}/x?sslmode=disable&target_session_attrs=read-write",
            texts.join(",")
        );
        Hosts::new(&url.parse().unwrap())
    }

    pub(crate) async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    /// Writes a message of the protocol.
    pub(crate) async fn send(to: &mut TcpStream, kind: u8, body: &[u8]) {
        let length = u32::try_from(body.len() + 4).unwrap();
        to.write_u8(kind).await.unwrap();
        to.write_u32(length).await.unwrap();
        to.write_all(body).await.unwrap();
    }

    pub(crate) async fn skip_body(from: &mut TcpStream) {
        let length = usize::try_from(from.read_u32().await.unwrap()).unwrap();
        let mut body = vec![0; length - 4];
        from.read_exact(&mut body).await.unwrap();
    }

    /// Answers one connection as a database does, and whether it takes no writes.
    async fn answer(listener: &TcpListener, is_read_only: &[u8]) {
        let mut peer = accept(listener, is_read_only).await;
        // Until the client ends it.
        let _ = peer.read_u8().await;
    }

    /// Takes a connection as a database does.
    pub(crate) async fn accept(listener: &TcpListener, is_read_only: &[u8]) -> TcpStream {
        let (mut peer, _) = listener.accept().await.unwrap();
        skip_body(&mut peer).await;
        send(&mut peer, b'R', &[0; 4]).await;
        send(&mut peer, b'Z', b"I").await;
        assert_eq!(peer.read_u8().await.unwrap(), b'Q');
        skip_body(&mut peer).await;
        let column = b"\0\x01x\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
        send(&mut peer, b'T', column).await;
        let length = u32::try_from(is_read_only.len()).unwrap().to_be_bytes();
        let row = [&b"\0\x01"[..], &length, is_read_only].concat();
        send(&mut peer, b'D', &row).await;
        send(&mut peer, b'C', b"SHOW\0").await;
        send(&mut peer, b'Z', b"I").await;
        peer
    }

    #[tokio::test]
    async fn a_host_that_accepts_and_answers_nothing_does_not_keep_the_next_one_from_being_tried() {
        // The system accepts connections that the listener does not.
        let (_frozen, first) = listener().await;
        let (standby, second) = listener().await;
        let (primary, third) = listener().await;
        let mut hosts = hosts(&[first, second, third]);
        assert_eq!(hosts.wait, Duration::from_secs(2), "a third of six");
        hosts.wait = Duration::from_millis(300);
        let databases = async {
            tokio::join!(answer(&standby, b"on"), answer(&primary, b"off"));
        };
        let connect = async { hosts.connect(&NoTls).await.map(|_| ()) };
        tokio::select! {
            connected = connect => connected.unwrap(),
            () = databases => panic!("they answer until the client is done"),
        }
        // The next session does not wait for the first.
        let [first, second, third] = [first, second, third].map(|it| it.port());
        assert_eq!(ports(&hosts, hosts.now()), [second, third, first]);
        let later = limits::STORE_HOST_AVOIDED.as_millis();
        let later = hosts.now() + u64::try_from(later).unwrap();
        assert_eq!(ports(&hosts, later), [first, second, third]);
    }

    /// The ports of the hosts in the order in which they are tried.
    fn ports(hosts: &Hosts, now: u64) -> Vec<u16> {
        let order = hosts.order(now).into_iter();
        let ports = order.map(|(host, _)| host.get_ports().to_vec());
        ports.collect::<Vec<_>>().concat()
    }

    #[tokio::test]
    async fn a_host_that_is_slow_to_fail_is_tried_after_the_others() {
        let (slow, first) = listener().await;
        let (quick, second) = listener().await;
        drop(quick);
        let mut hosts = hosts(&[first, second]);
        hosts.slow = Duration::from_millis(50);
        let fail = async {
            let (peer, _) = slow.accept().await.unwrap();
            tokio::time::sleep(hosts.slow).await;
            drop(peer);
        };
        let (connected, ()) = tokio::join!(hosts.connect(&NoTls), fail);
        assert!(connected.is_err());
        let [first, second] = [first, second].map(|it| it.port());
        assert_eq!(ports(&hosts, hosts.now()), [second, first]);
    }

    #[tokio::test]
    async fn the_host_that_was_tried_last_is_named_when_none_takes_writes() {
        let (_frozen, first) = listener().await;
        let mut hosts = hosts(&[first]);
        assert_eq!(hosts.wait, limits::STORE_ANSWER_WAIT.as_duration());
        hosts.wait = Duration::from_millis(50);
        let error = hosts.connect(&NoTls).await.map(|_| ()).unwrap_err();
        assert!(error.is_away(), "{error}");
        let error = error.to_string();
        assert!(error.contains(&format!("{first}/x")), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }

    #[test]
    fn each_host_has_all_settings_of_the_url() {
        let all = "host=a,/b hostaddr=10.0.0.1,10.0.0.2 port=1,2 user=u password=p dbname=d options=o application_name=n \
                   sslmode=require sslnegotiation=direct connect_timeout=3 tcp_user_timeout=4 keepalives=0 keepalives_idle=5 \
                   keepalives_interval=6 keepalives_retries=7 target_session_attrs=read-write channel_binding=require \
                   load_balance_hosts=random";
        let mut all: Config = all.parse().unwrap();
        let hosts = Hosts::new(&all);
        let found = hosts.each.iter().map(place);
        assert_eq!(found.collect::<Vec<_>>(), ["a:1/d", "/b/d"]);
        // Together they are what was given.
        let [a, b] = &hosts.each[..] else {
            panic!("there are two");
        };
        assert_eq!(a.get_hostaddrs(), &all.get_hostaddrs()[..1]);
        assert_eq!((a.get_ports(), b.get_ports()), (&[1][..], &[2][..]));
        let mut both = a.clone();
        both.host_path("/b");
        both.hostaddr(b.get_hostaddrs()[0]);
        both.port(2);
        assert_eq!(both, all);
        // One port is that of all hosts.
        all = "host=a,b port=7".parse().unwrap();
        let found = Hosts::new(&all);
        let found = found.each.iter().map(place);
        assert_eq!(found.collect::<Vec<_>>(), ["a:7/postgres", "b:7/postgres"]);
    }

    #[test]
    fn many_hosts_have_time_enough_each() {
        let seconds = |count| wait(count).as_secs();
        assert_eq!([1, 2, 3, 6, 20].map(seconds), [6, 3, 2, 1, 1]);
    }
}
