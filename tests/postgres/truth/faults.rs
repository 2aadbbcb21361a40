//! What befalls a job in the truth test: it is killed, its server starts again, its connections are cut, delayed, and stopped.

use std::time::Duration;

use rand::Rng;
use rand::rngs::StdRng;

use crate::support::postgres::Shutdown;

/// One thing that befalls the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The process is killed and starts again.
    Kill,
    /// The server ends and starts again.
    RestartServer(Shutdown),
    /// All connections are cut.
    Cut,
    /// All connections are cut, and new ones for a while.
    Refuse(Duration),
    /// Everything takes longer for a while.
    Delay(Duration),
    /// Nothing arrives for a while.
    Stall(Duration),
}

/// What befalls a job, each after so many more transactions of the load.
pub(super) fn draw_faults(rng: &mut StdRng) -> Vec<(u64, Fault)> {
    let millis = |rng: &mut StdRng, max: u64| Duration::from_millis(rng.random_range(50..max));
    let mut faults = vec![Fault::Kill, Fault::Kill, Fault::Cut];
    faults.push(Fault::RestartServer(if rng.random_bool(0.5) {
        Shutdown::Fast
    } else {
        Shutdown::Immediate
    }));
    for _ in 0..4 {
        faults.push(match rng.random_range(0..6) {
            0 => Fault::Kill,
            1 => Fault::Cut,
            2 => Fault::Refuse(millis(rng, 1_000)),
            3 => Fault::Delay(millis(rng, 400)),
            4 => Fault::Stall(millis(rng, 1_500)),
            _ => Fault::RestartServer(Shutdown::Immediate),
        });
    }
    for at in (1..faults.len()).rev() {
        faults.swap(at, rng.random_range(0..=at));
    }
    // Whatever the rest may be, the stream is read for a while and the process killed in its midst.
    let mut planned: Vec<(u64, Fault)> =
        faults.into_iter().map(|fault| (rng.random_range(20..500), fault)).collect();
    planned.push((400, Fault::Kill));
    planned
}

#[test]
fn every_seed_kills_the_process_and_restarts_the_server() {
    use rand::SeedableRng;
    for seed in 0..50 {
        let faults = draw_faults(&mut StdRng::seed_from_u64(seed));
        assert!(faults.iter().filter(|(_, fault)| *fault == Fault::Kill).count() >= 3);
        assert!(faults.iter().any(|(_, fault)| matches!(fault, Fault::RestartServer(_))));
        assert_eq!(faults, draw_faults(&mut StdRng::seed_from_u64(seed)));
    }
}
