//! A TCP proxy that a test lets cut, delay, stop and slow down the connections through it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::postgres::RUNTIME;

/// How much is on its way at once in one direction of a connection: pieces of at most `PIECE` bytes.
const PIECES: usize = 64;

/// The most bytes that are passed on together.
const PIECE: usize = 16 * 1024;

/// What happens to connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Weather {
    /// How long a byte is on its way.
    delay: Duration,
    /// Nothing is passed on.
    is_stalled: bool,
    /// New connections are closed at once.
    is_refusing: bool,
    /// How many bytes a connection passes on in a second, in each direction.
    rate: Option<u32>,
    /// Servers do not learn that their client has gone.
    hides_ends: bool,
    /// Connections of an earlier number are cut.
    cut_count: u32,
}

/// A proxy in front of a port of this machine.
pub(crate) struct Proxy {
    port: u16,
    weather: watch::Sender<Weather>,
    target: Arc<AtomicU16>,
    counts: Arc<Counts>,
}

/// How many connections there were.
#[derive(Debug, Default)]
struct Counts {
    open: AtomicUsize,
    attempted: AtomicUsize,
}

impl Proxy {
    /// Starts a proxy, which lives as long as the test.
    pub(crate) fn start(target: u16) -> Proxy {
        let (weather, seen) = watch::channel(Weather::default());
        let listener = RUNTIME.block_on(TcpListener::bind(("127.0.0.1", 0))).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (target, counts) = (Arc::new(AtomicU16::new(target)), Arc::new(Counts::default()));
        let proxy = Proxy { port, weather, target: Arc::clone(&target), counts: Arc::clone(&counts) };
        RUNTIME.spawn(async move {
            // It ends with the proxy's value, which closes the channel.
            let mut end = seen.clone();
            loop {
                let client = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = closed(&mut end) => return,
                };
                let Ok((client, _)) = client else { return };
                counts.attempted.fetch_add(1, Ordering::SeqCst);
                if seen.borrow().is_refusing {
                    continue;
                }
                let target = target.load(Ordering::SeqCst);
                tokio::spawn(pass(client, target, seen.clone(), Arc::clone(&counts)));
            }
        });
        proxy
    }

    /// Returns the port to connect to.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns how many connections are open.
    pub(crate) fn open_count(&self) -> usize {
        self.counts.open.load(Ordering::SeqCst)
    }

    /// Returns how many connections there were, those that were refused among them.
    pub(crate) fn attempt_count(&self) -> usize {
        self.counts.attempted.load(Ordering::SeqCst)
    }

    /// Leads new connections to another port.
    pub(crate) fn redirect(&self, target: u16) {
        self.target.store(target, Ordering::SeqCst);
    }

    fn change(&self, change: impl FnOnce(&mut Weather)) {
        self.weather.send_modify(change);
    }

    /// Cuts all connections. New ones are made as before.
    pub(crate) fn cut(&self) {
        self.change(|weather| weather.cut_count += 1);
    }

    /// Cuts all connections and refuses new ones until `calm`.
    pub(crate) fn refuse(&self) {
        self.change(|weather| {
            weather.cut_count += 1;
            weather.is_refusing = true;
        });
    }

    /// Passes nothing on until `calm`, while the connections stay.
    pub(crate) fn stall(&self) {
        self.change(|weather| weather.is_stalled = true);
    }

    /// Lets every byte be on its way for a while.
    pub(crate) fn delay(&self, delay: Duration) {
        self.change(|weather| weather.delay = delay);
    }

    /// Keeps connections to the server open whose client has gone, until `calm`.
    pub(crate) fn hide_ends(&self) {
        self.change(|weather| weather.hides_ends = true);
    }

    /// Passes on so many bytes a second.
    pub(crate) fn slow_down(&self, bytes_per_second: u32) {
        self.change(|weather| weather.rate = Some(bytes_per_second));
    }

    /// Passes on everything at once again.
    pub(crate) fn calm(&self) {
        self.change(|weather| {
            *weather = Weather { cut_count: weather.cut_count, ..Weather::default() };
        });
    }
}

/// Waits until the proxy's value is gone.
async fn closed(weather: &mut watch::Receiver<Weather>) {
    while weather.changed().await.is_ok() {}
}

/// Passes on what both sides of a connection say, until one closes it or it is cut.
async fn pass(client: TcpStream, target: u16, mut weather: watch::Receiver<Weather>, counts: Arc<Counts>) {
    let born = weather.borrow().cut_count;
    let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { return };
    // Neither side is to wait for more bytes than the other has sent.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    counts.open.fetch_add(1, Ordering::SeqCst);
    let (from_client, to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let mut cut = weather.clone();
    tokio::select! {
        () = direction(from_client, &mut to_server, weather.clone()) => {}
        () = async { direction(from_server, &mut { to_client }, weather.clone()).await } => {}
        _ = cut.wait_for(|weather| weather.cut_count != born) => {}
    }
    counts.open.fetch_sub(1, Ordering::SeqCst);
    // The proxy's end is an end, too.
    let _ = weather.wait_for(|weather| !weather.hides_ends).await;
    drop(to_server);
}

/// Passes on one direction until it ends, and what was said before that, too.
async fn direction(mut from: OwnedReadHalf, to: &mut OwnedWriteHalf, weather: watch::Receiver<Weather>) {
    let (sender, pieces) = mpsc::channel(PIECES);
    let read = async move {
        let mut buffer = vec![0; PIECE];
        while let Ok(length @ 1..) = from.read(&mut buffer).await {
            if sender.send((Instant::now(), buffer[..length].to_vec())).await.is_err() {
                break;
            }
        }
    };
    tokio::join!(read, send(pieces, to, weather));
}

/// Writes pieces when they are due.
async fn send(
    mut pieces: mpsc::Receiver<(Instant, Vec<u8>)>,
    to: &mut OwnedWriteHalf,
    mut weather: watch::Receiver<Weather>,
) {
    while let Some((read_at, piece)) = pieces.recv().await {
        let now = match weather.wait_for(|weather| !weather.is_stalled).await {
            Ok(now) => *now,
            Err(_) => return,
        };
        tokio::time::sleep_until(read_at + now.delay).await;
        if let Some(rate) = now.rate {
            tokio::time::sleep(Duration::from_secs_f64(piece.len() as f64 / f64::from(rate))).await;
        }
        if to.write_all(&piece).await.is_err() {
            return;
        }
    }
}

#[test]
fn a_proxy_passes_on_delays_and_cuts() {
    let listener = RUNTIME.block_on(TcpListener::bind(("127.0.0.1", 0))).unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap().port());
    RUNTIME.block_on(async {
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let mut word = [0; 4];
        client.write_all(b"ping").await.unwrap();
        server.read_exact(&mut word).await.unwrap();
        assert_eq!(&word, b"ping");

        proxy.delay(Duration::from_millis(50));
        let sent = Instant::now();
        server.write_all(b"pong").await.unwrap();
        client.read_exact(&mut word).await.unwrap();
        assert!(sent.elapsed() >= Duration::from_millis(50));

        proxy.cut();
        assert_eq!(server.read(&mut word).await.unwrap_or(0), 0);
        assert_eq!(client.read(&mut word).await.unwrap_or(0), 0);

        proxy.refuse();
        let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        assert_eq!(client.read(&mut word).await.unwrap_or(0), 0);
        proxy.calm();
        let _client = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        listener.accept().await.unwrap();
    });
}
