//! A bounded cache of what immutable files hold, shared by all queries of the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Values by the location of their file; those unused for longest go when the limit is passed.
#[derive(Debug)]
pub(in crate::connector::iceberg) struct WeightedCache<V> {
    bytes_max: usize,
    state: Mutex<State<V>>,
}

#[derive(Debug)]
struct State<V> {
    entries: HashMap<Arc<str>, Entry<V>>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: Arc<V>,
    bytes: usize,
    last_use: u64,
}

impl<V> WeightedCache<V> {
    /// Makes a cache of so many bytes.
    pub(in crate::connector::iceberg) fn new(bytes_max: usize) -> WeightedCache<V> {
        WeightedCache { bytes_max, state: Mutex::new(State { entries: HashMap::new(), bytes: 0, clock: 0 }) }
    }

    /// Returns what a file holds, if it is known.
    pub(in crate::connector::iceberg) fn get(&self, location: &str) -> Option<Arc<V>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        let now = state.clock;
        let entry = state.entries.get_mut(location)?;
        entry.last_use = now;
        Some(Arc::clone(&entry.value))
    }

    /// Keeps what a file holds, with the bytes that it takes in memory. What is larger than the whole cache is not kept.
    pub(in crate::connector::iceberg) fn insert(&self, location: &str, value: Arc<V>, bytes: usize) {
        let bytes = bytes + location.len() + size_of::<Entry<V>>();
        if bytes > self.bytes_max {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.clock += 1;
        let last_use = state.clock;
        if let Some(replaced) = state.entries.insert(location.into(), Entry { value, bytes, last_use }) {
            state.bytes -= replaced.bytes;
        }
        state.bytes += bytes;
        if state.bytes > self.bytes_max {
            state.evict(self.bytes_max / 4 * 3);
        }
    }
}

impl<V> State<V> {
    /// Drops the oldest entries until so many bytes are left. A quarter goes at once, so that the sort is rare.
    fn evict(&mut self, bytes_max: usize) {
        let mut by_age: Vec<(u64, Arc<str>)> =
            self.entries.iter().map(|(location, entry)| (entry.last_use, Arc::clone(location))).collect();
        by_age.sort_unstable();
        for (_, location) in by_age {
            if self.bytes <= bytes_max {
                return;
            }
            if let Some(entry) = self.entries.remove(&location) {
                self.bytes -= entry.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_stays() {
        let cache = WeightedCache::new(10_000);
        for number in 0..100 {
            cache.insert(&format!("file {number}"), Arc::new(number), 900);
            assert!(cache.get("file 0").is_some(), "{number}");
        }
        assert!(cache.get("file 99").is_some());
        assert!(cache.get("file 50").is_none());
        assert!(cache.state.lock().unwrap().bytes <= 10_000);
    }

    #[test]
    fn a_value_larger_than_the_cache_is_not_kept() {
        let cache = WeightedCache::new(1000);
        cache.insert("small", Arc::new(1), 100);
        cache.insert("large", Arc::new(2), 2000);
        assert_eq!(cache.get("small").as_deref(), Some(&1));
        assert!(cache.get("large").is_none());
    }

    #[test]
    fn a_replaced_value_weighs_no_more() {
        let cache = WeightedCache::new(10_000);
        for number in 0..100 {
            cache.insert("same", Arc::new(number), 5000);
        }
        assert_eq!(cache.get("same").as_deref(), Some(&99));
        assert_eq!(cache.state.lock().unwrap().entries.len(), 1);
    }
}
