//! Cancel requests: they come on a connection of their own, with the key that the other connection got at its start.
//!
//! A request marks the connection as cancelled; whatever it runs at that moment ends with 57014. A connection that runs
//! nothing ignores the mark when its next message arrives.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use pgwire::api::{ClientInfo, DefaultClient, PidSecretKeyGenerator, RandomPidSecretKeyGenerator};
use pgwire::messages::ProtocolVersion;
use tokio::sync::watch;

/// Connections that can be cancelled, by process number and secret.
#[derive(Default)]
pub(super) struct Cancels {
    keys: RandomPidSecretKeyGenerator,
    connections: Mutex<HashMap<(i32, i32), watch::Sender<()>>>,
}

impl Cancels {
    /// A key for a new connection; forgotten when the registration is dropped.
    pub(super) fn register(self: &Arc<Self>, peer: SocketAddr) -> Registration {
        let mut client = DefaultClient::<()>::new(peer, false);
        // Decides the length of the secret; this server speaks 3.0.
        client.set_protocol_version(ProtocolVersion::PROTOCOL3_0);
        let (process, secret) = self.keys.generate(&client);
        let secret = secret.as_i32().expect("keys of protocol 3.0 have four bytes");
        let (sender, requests) = watch::channel(());
        self.lock().insert((process, secret), sender);
        Registration { cancels: Arc::clone(self), process, secret, requests }
    }

    /// Cancels what this connection runs. An unknown key is ignored: the client is told nothing in either case.
    pub(super) fn cancel(&self, process: i32, secret: i32) {
        if let Some(sender) = self.lock().get(&(process, secret)) {
            sender.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(i32, i32), watch::Sender<()>>> {
        self.connections.lock().expect("nobody panics while holding this lock")
    }
}

/// A connection's place among the cancellable ones.
pub(super) struct Registration {
    cancels: Arc<Cancels>,
    /// What the client takes for a process number.
    pub(super) process: i32,
    /// Proves that a cancel request comes from this client.
    pub(super) secret: i32,
    requests: watch::Receiver<()>,
}

impl Registration {
    /// Changes with every cancel request.
    pub(super) fn requests(&self) -> watch::Receiver<()> {
        self.requests.clone()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.cancels.lock().remove(&(self.process, self.secret));
    }
}
