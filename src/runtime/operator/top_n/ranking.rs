//! Rows in an order, in chunks of bounded size: adding and removing moves a few hundred entries at most, however many there are, and
//! most partitions are one chunk.

/// The largest chunk; a chunk that grows beyond it is cut in two.
const CHUNK_MAX: usize = 512;

/// The first bytes of an order key, as a number of the same order.
pub(super) type Prefix = [u64; 2];

/// Returns the first bytes of an order key.
#[inline]
pub(super) fn prefix(key: &[u8]) -> Prefix {
    let word = |bytes: &[u8]| match bytes.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => bytes.iter().rfold(0, |word, byte| (word >> 8) | u64::from(*byte) << 56),
    };
    [word(key), word(key.get(8..).unwrap_or_default())]
}

/// A row of a ranking. Most comparisons are decided by the prefix, without a look at the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ranked {
    /// The first bytes of the row's order key.
    pub(super) prefix: Prefix,
    /// The row's number.
    pub(super) number: u32,
}

/// Rows of one partition from the first to the last rank.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// The first chunk; only an empty ranking has an empty one.
    head: Vec<Ranked>,
    /// The others.
    rest: Vec<Vec<Ranked>>,
    /// What is allocated.
    bytes: usize,
}

/// A place in a ranking, also the one behind the last row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    chunk: usize,
    offset: usize,
}

impl Ranking {
    /// Returns whether there is no row.
    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// Returns how many rows there are.
    pub(super) fn len(&self) -> usize {
        self.chunks().map(Vec::len).sum()
    }

    /// Returns the rows in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Ranked> + '_ {
        self.chunks().flatten().copied()
    }

    /// Adds the first rows, so many at most, to a list.
    pub(super) fn copy_first(&self, count: usize, list: &mut Vec<Ranked>) {
        let mut left = count;
        for chunk in self.chunks() {
            let taken = chunk.len().min(left);
            list.extend_from_slice(&chunk[..taken]);
            left -= taken;
            if left == 0 {
                break;
            }
        }
    }

    /// Returns the last row.
    pub(super) fn last(&self) -> Option<Ranked> {
        self.rest.last().unwrap_or(&self.head).last().copied()
    }

    /// Returns the first place whose row is not before what is looked for; rows before it stand in front.
    pub(super) fn first_not(&self, is_before: impl Fn(&Ranked) -> bool) -> Place {
        let mut chunk = 0;
        if !self.rest.is_empty() {
            // Behind the last row is the end of the last chunk.
            let ends = |at: usize| self.chunk(at).last().is_some_and(&is_before);
            let (mut low, mut high) = (0, self.rest.len());
            while low < high {
                let middle = (low + high) / 2;
                if ends(middle) { low = middle + 1 } else { high = middle }
            }
            chunk = low;
        }
        Place { chunk, offset: self.chunk(chunk).partition_point(is_before) }
    }

    /// Returns the rows in order, with their places.
    pub(super) fn places(&self) -> impl Iterator<Item = (Place, Ranked)> + '_ {
        self.chunks().enumerate().flat_map(|(chunk, rows)| {
            rows.iter().enumerate().map(move |(offset, row)| (Place { chunk, offset }, *row))
        })
    }

    /// Returns whether fewer than so many rows stand in front of a place.
    pub(super) fn is_within(&self, place: Place, count: usize) -> bool {
        let mut in_front = place.offset;
        for chunk in self.chunks().take(place.chunk) {
            if in_front >= count {
                return false;
            }
            in_front += chunk.len();
        }
        in_front < count
    }

    /// Puts a row at a place, in front of the one that is there. A ranking that never has more than `count_max` rows gets memory
    /// for no more.
    pub(super) fn insert(&mut self, place: Place, row: Ranked, count_max: usize) {
        let rows = self.chunk_mut(place.chunk);
        let capacity = rows.capacity();
        if rows.len() == capacity {
            let more = capacity.max(4).min(count_max.saturating_sub(capacity)).max(1);
            rows.reserve_exact(more);
        }
        rows.insert(place.offset, row);
        let more = rows.capacity() - capacity;
        if rows.len() > CHUNK_MAX {
            let half = rows.split_off(CHUNK_MAX / 2);
            self.rest.insert(place.chunk, half);
            self.bytes = self.allocated();
        } else {
            self.bytes += more * size_of::<Ranked>();
        }
    }

    /// Puts another row in the place of one.
    pub(super) fn replace(&mut self, place: Place, row: Ranked) {
        self.chunk_mut(place.chunk)[place.offset] = row;
    }

    /// Takes the row at a place out.
    pub(super) fn remove(&mut self, place: Place) {
        self.chunk_mut(place.chunk).remove(place.offset);
        self.drop_if_empty(place.chunk);
    }

    /// Takes the last row out.
    pub(super) fn pop(&mut self) -> Option<Ranked> {
        let chunk = self.rest.len();
        let row = self.chunk_mut(chunk).pop();
        self.drop_if_empty(chunk);
        row
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn chunks(&self) -> impl Iterator<Item = &Vec<Ranked>> {
        std::iter::once(&self.head).chain(&self.rest)
    }

    #[inline]
    fn chunk(&self, at: usize) -> &Vec<Ranked> {
        if at == 0 { &self.head } else { &self.rest[at - 1] }
    }

    #[inline]
    fn chunk_mut(&mut self, at: usize) -> &mut Vec<Ranked> {
        if at == 0 { &mut self.head } else { &mut self.rest[at - 1] }
    }

    fn drop_if_empty(&mut self, chunk: usize) {
        if !self.chunk(chunk).is_empty() {
            return;
        }
        if chunk > 0 {
            self.rest.remove(chunk - 1);
        } else if self.rest.is_empty() {
            self.head = Vec::new();
        } else {
            self.head = self.rest.remove(0);
        }
        self.bytes = self.allocated();
    }

    fn allocated(&self) -> usize {
        let rows: usize = self.chunks().map(Vec::capacity).sum();
        rows * size_of::<Ranked>() + self.rest.capacity() * size_of::<Vec<Ranked>>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Random;
    use super::*;

    #[test]
    fn a_prefix_has_the_order_of_its_key() {
        let keys: [&[u8]; 7] = [
            b"",
            b"\x00a",
            b"\x01",
            b"\x01\x80\0\0\0\0\0\0",
            b"\x01\x80\0\0\0\0\0\0\x05",
            b"\x01\x80\0\0\0\0\0\0\x05\x01",
            b"z",
        ];
        assert!(keys.windows(2).all(|pair| prefix(pair[0]) <= prefix(pair[1])));
        assert_eq!(prefix(b"0123456789abcdefXYZ"), prefix(b"0123456789abcdef"));
        assert_eq!(prefix(keys[4]), [0x0180 << 48, 5 << 56]);
    }

    #[test]
    fn a_ranking_is_a_sorted_list() {
        let ranked = |number: u32| Ranked { prefix: [number.into(), 0], number };
        let mut random = Random::new(1);
        for bound in [4, 3_000] {
            let (mut ranking, mut model) = (Ranking::default(), Vec::<u32>::new());
            for step in 0..4_000 {
                let value = random.below(bound) as u32;
                let at = model.partition_point(|row| *row <= value);
                if step % 5 < 3 {
                    let place = ranking.first_not(|row| row.number <= value);
                    ranking.insert(place, ranked(value), usize::MAX);
                    model.insert(at, value);
                } else if at > 0 && model[at - 1] == value {
                    let place = ranking.first_not(|row| row.number < value);
                    let first = model.partition_point(|row| *row < value);
                    assert!(ranking.is_within(place, first + 1) && !ranking.is_within(place, first));
                    assert_eq!(ranking.places().nth(first), Some((place, ranked(value))));
                    ranking.remove(place);
                    model.remove(first);
                } else {
                    assert_eq!(ranking.pop(), model.pop().map(ranked));
                }
            }
            assert!(ranking.iter().eq(model.iter().copied().map(ranked)));
            assert_eq!((ranking.len(), ranking.last()), (model.len(), model.last().copied().map(ranked)));
            assert_eq!(ranking.bytes(), ranking.allocated());
            while ranking.pop().is_some() {}
            assert!(ranking.is_empty() && ranking.bytes() == ranking.allocated());
        }
    }
}
