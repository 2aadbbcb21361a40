//! What the server may forget. A job may be started again from any of its last checkpoints, so what lies behind the oldest of them
//! stays: the position of a checkpoint is released when so many newer ones are complete.

use std::collections::VecDeque;

use tokio::sync::watch;

use super::NOTHING;
use crate::connector::postgres::pgoutput::Lsn;

/// Holds positions back.
#[derive(Debug)]
pub(super) struct Releases {
    delay: usize,
    held: VecDeque<Lsn>,
    released: watch::Sender<Lsn>,
}

impl Releases {
    /// Holds the positions of the last `delay` checkpoints back; the others can be heard of.
    pub(super) fn new(delay: u64) -> (Releases, watch::Receiver<Lsn>) {
        let (released, hears) = watch::channel(NOTHING);
        let delay = usize::try_from(delay).unwrap_or(usize::MAX);
        (Releases { delay, held: VecDeque::new(), released }, hears)
    }

    /// Notes that a checkpoint is complete.
    pub(super) fn checkpointed(&mut self, position: Lsn) {
        self.held.push_back(position);
        while self.held.len() > self.delay
            && let Some(position) = self.held.pop_front()
        {
            self.released.send_replace(position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_released_when_so_many_checkpoints_have_followed() {
        let (mut releases, hears) = Releases::new(2);
        let released = |releases: &mut Releases, at| {
            releases.checkpointed(Lsn(at));
            hears.borrow().0
        };
        let heard: Vec<u64> = [10, 20, 30, 40].map(|at| released(&mut releases, at)).to_vec();
        assert_eq!(heard, [0, 0, 10, 20]);
        let (mut releases, hears) = Releases::new(0);
        releases.checkpointed(Lsn(5));
        assert_eq!(*hears.borrow(), Lsn(5));
    }
}
