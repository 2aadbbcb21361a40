//! Row numbers in an order, in chunks of bounded size: adding and removing moves a few hundred numbers at most, however many there
//! are, and most partitions are one chunk.

/// The largest chunk; a chunk that grows beyond it is cut in two.
const CHUNK_MAX: usize = 512;

/// Rows of one partition from the first to the last rank.
#[derive(Debug, Default)]
pub(super) struct Ranking {
    /// None is empty.
    chunks: Vec<Vec<u32>>,
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
        self.chunks.is_empty()
    }

    /// Returns how many rows there are.
    pub(super) fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    /// Returns the rows in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.chunks.iter().flatten().copied()
    }

    /// Returns the last row.
    pub(super) fn last(&self) -> Option<u32> {
        self.chunks.last()?.last().copied()
    }

    /// Returns the first place whose row is not before what is looked for; rows before it stand in front.
    pub(super) fn first_not(&self, is_before: impl Fn(u32) -> bool) -> Place {
        let chunk = self.chunks.partition_point(|chunk| is_before(chunk[chunk.len() - 1]));
        match self.chunks.get(chunk) {
            Some(rows) => Place { chunk, offset: rows.partition_point(|row| is_before(*row)) },
            None => Place { chunk, offset: 0 },
        }
    }

    /// Returns the rows in order, with their places.
    pub(super) fn places(&self) -> impl Iterator<Item = (Place, u32)> + '_ {
        let chunks = self.chunks.iter().enumerate();
        chunks.flat_map(|(chunk, rows)| {
            rows.iter().enumerate().map(move |(offset, row)| (Place { chunk, offset }, *row))
        })
    }

    /// Returns whether fewer than so many rows stand in front of a place.
    pub(super) fn is_within(&self, place: Place, count: usize) -> bool {
        let mut in_front = place.offset;
        for chunk in &self.chunks[..place.chunk] {
            if in_front >= count {
                return false;
            }
            in_front += chunk.len();
        }
        in_front < count
    }

    /// Puts a row at a place, in front of the one that is there.
    pub(super) fn insert(&mut self, place: Place, row: u32) {
        if self.chunks.is_empty() {
            self.chunks.push(vec![row]);
            self.bytes = self.allocated();
            return;
        }
        // Behind the last row is a chunk that does not exist: the row belongs at the end of the one in front.
        let (chunk, offset) = match self.chunks.get(place.chunk) {
            Some(_) => (place.chunk, place.offset),
            None => (place.chunk - 1, self.chunks[place.chunk - 1].len()),
        };
        let rows = &mut self.chunks[chunk];
        let capacity = rows.capacity();
        rows.insert(offset, row);
        self.bytes += (rows.capacity() - capacity) * size_of::<u32>();
        if rows.len() > CHUNK_MAX {
            let half = rows.split_off(CHUNK_MAX / 2);
            self.chunks.insert(chunk + 1, half);
            self.bytes = self.allocated();
        }
    }

    /// Puts another row in the place of one.
    pub(super) fn replace(&mut self, place: Place, row: u32) {
        self.chunks[place.chunk][place.offset] = row;
    }

    /// Takes the row at a place out.
    pub(super) fn remove(&mut self, place: Place) {
        let rows = &mut self.chunks[place.chunk];
        rows.remove(place.offset);
        if rows.is_empty() {
            self.chunks.remove(place.chunk);
            self.bytes = self.allocated();
        }
    }

    /// Takes the last row out.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let last = self.chunks.last_mut()?;
        let row = last.pop();
        if last.is_empty() {
            self.chunks.pop();
            self.bytes = self.allocated();
        }
        row
    }

    /// Returns how many bytes are allocated.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn allocated(&self) -> usize {
        let rows: usize = self.chunks.iter().map(Vec::capacity).sum();
        rows * size_of::<u32>() + self.chunks.capacity() * size_of::<Vec<u32>>()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Random;
    use super::*;

    #[test]
    fn a_ranking_is_a_sorted_list() {
        let mut random = Random::new(1);
        for bound in [4, 3_000] {
            let (mut ranking, mut model) = (Ranking::default(), Vec::<u32>::new());
            for step in 0..4_000 {
                let value = random.below(bound) as u32;
                let at = model.partition_point(|row| *row <= value);
                if step % 5 < 3 {
                    ranking.insert(ranking.first_not(|row| row <= value), value);
                    model.insert(at, value);
                } else if at > 0 && model[at - 1] == value {
                    let place = ranking.first_not(|row| row < value);
                    let first = model.partition_point(|row| *row < value);
                    assert!(ranking.is_within(place, first + 1) && !ranking.is_within(place, first));
                    assert_eq!(ranking.places().nth(first), Some((place, value)));
                    ranking.remove(place);
                    model.remove(first);
                } else {
                    assert_eq!(ranking.pop(), model.pop());
                }
            }
            assert!(ranking.iter().eq(model.iter().copied()));
            assert_eq!((ranking.len(), ranking.last()), (model.len(), model.last().copied()));
            assert_eq!(ranking.bytes(), ranking.allocated());
            while ranking.pop().is_some() {}
            assert!(ranking.is_empty() && ranking.bytes() >= size_of::<Vec<u32>>());
        }
    }
}
