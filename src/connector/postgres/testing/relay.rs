//! A way to a server on which nothing goes any more once that is said, and which nobody closes.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::TestDatabase;
use crate::connector::postgres::connection::PgServer;

/// A port that leads to a server.
pub(in crate::connector::postgres) struct Relay {
    port: u16,
    /// How many connections there have been.
    count: watch::Receiver<usize>,
    /// The connections of lower numbers pass nothing on.
    stalled: watch::Sender<usize>,
}

impl Relay {
    pub(in crate::connector::postgres) async fn start(target: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (counted, count) = watch::channel(0);
        let (stalled, seen) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = *counted.borrow();
                counted.send_replace(number + 1);
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { return };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(pass(from_client, to_server, number, seen.clone()));
                tokio::spawn(pass(from_server, to_client, number, seen.clone()));
            }
        });
        Relay { port, count, stalled }
    }

    /// Returns a database's server as it is reached through here, with a short patience.
    pub(in crate::connector::postgres) fn server(&self, database: &TestDatabase) -> PgServer {
        PgServer::new(database.settings(|settings| {
            settings.host = "127.0.0.1".to_owned();
            settings.port = self.port;
            settings.connect_timeout = std::time::Duration::from_secs(1);
        }))
    }

    /// Passes nothing on any more on the connections that there are.
    pub(in crate::connector::postgres) fn stall_open_ones(&self) {
        self.stalled.send_replace(*self.count.borrow());
    }

    /// Passes nothing on any more.
    pub(in crate::connector::postgres) fn stall(&self) {
        self.stalled.send_replace(usize::MAX);
    }
}

/// Passes on one direction of a connection, unless it is stalled.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    number: usize,
    mut stalled: watch::Receiver<usize>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if stalled.wait_for(|below| number >= *below).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
