//! What unauthenticated connections hold, who goes for whom, and what a socket notices of it.

use std::future::Future;
use std::task::Poll;
use std::time::Duration;

use crate::limits;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::*;
use crate::net::socket::Socket;

const ONE: PeerAddress = PeerAddress(1);
const OTHER: PeerAddress = PeerAddress(2);
const AMQP: usize = FirstByte::Amqp.bytes();

/// Room for so many connections with a usual beginning.
fn room_for(connections: usize) -> UnauthenticatedBytes {
    UnauthenticatedBytes::new(connections * AMQP)
}

/// Lets connections of a peer reserve until one has to wait; returns them.
fn fill(bytes: &UnauthenticatedBytes, peer: PeerAddress, now: Instant) -> Vec<Share> {
    let mut shares = Vec::new();
    loop {
        let share = bytes.share(peer);
        if !share.try_reserve(AMQP, now) {
            return shares;
        }
        shares.push(share);
    }
}

fn is_closed(share: &Share) -> bool {
    share.meter().check().is_err()
}

fn far() -> Instant {
    Instant::now() + Duration::from_hours(1)
}

async fn is_pending(future: &mut (impl Future + Unpin)) -> bool {
    std::future::poll_fn(|cx| {
        let polled = std::pin::Pin::new(&mut *future).poll(cx);
        Poll::Ready(polled.is_pending())
    })
    .await
}

#[tokio::test]
async fn a_connection_waits_until_another_of_its_address_has_ended() {
    let bytes = room_for(3);
    let mut shares = fill(&bytes, ONE, Instant::now());
    assert_eq!((shares.len(), bytes.held()), (3, 3 * AMQP));
    let next = bytes.share(ONE);
    let mut waits = Box::pin(next.reserve(FirstByte::Amqp, far()));
    assert!(is_pending(&mut waits).await);
    shares.pop();
    assert!(waits.await);
    assert!(
        !bytes
            .share(ONE)
            .reserve(FirstByte::Amqp, Instant::now())
            .await
    );
    assert!(!shares.iter().any(is_closed));
    drop((shares, next));
    assert_eq!((bytes.held(), bytes.closed()), (0, 0));
}

#[test]
fn an_address_with_little_gets_the_room_of_the_one_with_most() {
    let bytes = room_for(8);
    let now = Instant::now();
    let many = fill(&bytes, ONE, now);
    let few = fill(&bytes, OTHER, now);
    assert_eq!(few.len(), 4, "each has half");
    let closed: Vec<bool> = many.iter().map(is_closed).collect();
    assert_eq!(closed, [true, true, true, true, false, false, false, false]);
    assert_eq!(bytes.closed(), 4);
    assert_eq!(bytes.held(), 8 * AMQP);
    drop(many);
    assert_eq!(bytes.held(), 4 * AMQP, "what was closed is given back once");
}

#[test]
fn one_that_is_silent_for_long_goes_for_another_and_one_that_is_not_stays() {
    let bytes = room_for(2);
    let begun = Instant::now();
    let shares = [bytes.share(ONE), bytes.share(OTHER)];
    for share in &shares {
        assert!(share.try_reserve(AMQP, begun));
    }
    let later = begun + limits::UNAUTHENTICATED_SILENCE.as_duration();
    shares[0].meter().read(1).unwrap();
    let (next, third) = (bytes.share(PeerAddress(3)), bytes.share(PeerAddress(4)));
    assert!(!next.try_reserve(AMQP, begun), "none was silent for long");
    assert!(next.try_reserve(AMQP, later), "the second was");
    assert!(!is_closed(&shares[0]) && is_closed(&shares[1]));
    assert!(!third.try_reserve(AMQP, begun), "the others were not");
}

#[test]
fn who_has_sent_most_goes_when_all_is_used_up_and_usual_beginnings_stay() {
    let bytes = room_for(20);
    let now = Instant::now();
    let usual: Vec<Share> = (0..10).map(|_| bytes.share(ONE)).collect();
    for share in &usual {
        assert!(share.try_reserve(AMQP, now));
        share
            .meter()
            .read(limits::UNAUTHENTICATED_TRAFFIC_BYTES)
            .unwrap();
    }
    let large: Vec<Share> = (0..4).map(|_| bytes.share(OTHER)).collect();
    let mut sent = [0; 4];
    for share in &large {
        assert!(share.try_reserve(AMQP, now));
    }
    for _ in 0..40 {
        for (share, sent) in large.iter().zip(&mut sent) {
            if share.meter().read(1_000).is_ok() {
                *sent += 1_000;
            }
            assert!(bytes.held() <= 20 * AMQP);
        }
    }
    assert!(!usual.iter().any(is_closed), "they are not asked to go");
    assert_eq!(bytes.closed(), 3, "{sent:?}");
    assert_eq!(sent.iter().filter(|sent| **sent == 40_000).count(), 1);
}

#[test]
fn what_is_authorized_is_counted_no_more() {
    let bytes = room_for(2);
    let share = bytes.share(ONE);
    assert!(share.try_reserve(AMQP, Instant::now()));
    let meter = share.meter().clone();
    meter.read(10_000).unwrap();
    assert!(AMQP < bytes.held());
    drop(share);
    assert!(meter.is_over());
    meter.read(500_000).unwrap();
    meter.set_unread(500_000);
    assert_eq!(bytes.held(), 0);
}

#[test]
fn a_request_is_forgotten_with_its_answer_but_for_what_came_behind_it() {
    let bytes = room_for(10);
    let share = bytes.share(ONE);
    assert!(share.try_reserve(AMQP, Instant::now()));
    let meter = share.meter();
    for _ in 0..4 {
        meter.read(5_000).unwrap();
    }
    let free = limits::UNAUTHENTICATED_TRAFFIC_BYTES;
    assert_eq!(bytes.held(), AMQP + COPIES * (20_000 - free));
    meter.answered(30_000);
    assert_eq!(bytes.held(), AMQP + COPIES * (35_000 - free));
    meter.written(40_000);
    assert_eq!(bytes.held(), AMQP, "the last 5,000 are usual");
    meter.set_frames(8_000);
    assert_eq!(bytes.held(), AMQP + COPIES * (8_000 - free));
}

#[test]
fn no_unauthenticated_connection_sends_without_end() {
    let bytes = UnauthenticatedBytes::default();
    let share = bytes.share(ONE);
    assert!(share.try_reserve(AMQP, Instant::now()));
    let most = limits::UNAUTHENTICATED_READ_BYTES_MAX;
    assert!(share.meter().read(most).is_ok());
    assert!(share.meter().read(1).is_err());
}

#[tokio::test]
async fn a_socket_that_waits_ends_when_its_connection_is_closed_for_want_of_room() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let _peer = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let mut socket = Socket::new(listener.accept().await.unwrap().0);
    let bytes = room_for(1);
    let share = bytes.share(ONE);
    assert!(share.try_reserve(AMQP, Instant::now()));
    socket.count_with(share.meter().clone());
    let mut byte = [0];
    let mut reads = Box::pin(socket.read(&mut byte));
    assert!(is_pending(&mut reads).await);
    let other = bytes.share(OTHER);
    let late = Instant::now() + limits::UNAUTHENTICATED_SILENCE.as_duration();
    assert!(other.try_reserve(AMQP, late));
    let read = timeout(Duration::from_secs(20), reads).await.unwrap();
    assert_eq!(read.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
}

#[tokio::test]
async fn two_thousand_of_one_address_get_their_turns_in_little_room() {
    let bytes = room_for(100);
    let all = (0..2_000).map(|_| {
        let bytes = bytes.clone();
        tokio::spawn(async move {
            let share = bytes.share(ONE);
            let has_room = share.reserve(FirstByte::Amqp, far()).await;
            // The others come while this one shows its token.
            tokio::task::yield_now().await;
            has_room && !is_closed(&share)
        })
    });
    for one in all.collect::<Vec<_>>() {
        assert!(one.await.unwrap());
    }
    assert_eq!((bytes.held(), bytes.closed()), (0, 0));
}
