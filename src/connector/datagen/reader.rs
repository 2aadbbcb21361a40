//! Counts rows at a rate: a frame every hundredth of a second, or one per row where rows are rarer than that. So a row comes no
//! later than ten milliseconds after its time, and a slow table is smooth.

use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep_until};

use crate::connector::{Frame, SourceEvent, SourcePosition, SourceReader};
use crate::error::{Error, ErrorKind, Result};

/// How many frames come in a second.
const TICKS_PER_SECOND: u64 = 100;

/// How long it takes from one to the next.
const TICK: Duration = Duration::from_millis(1_000 / TICKS_PER_SECOND);

/// How many rows a frame has at most.
const FRAME_ROWS: u64 = 8_192;

/// About how many bytes the rows of a frame have at most, unless it is one row.
const FRAME_BYTES: u64 = 4 << 20;

/// No row is taken for larger, so that the bytes of all rows that wait can be added up.
const ROW_BYTES_MAX: usize = 1 << 40;

/// The name of the only split.
const SPLIT: &str = "0";

/// Says which rows are due.
#[derive(Debug)]
pub(super) struct RateReader {
    rate: u64,
    end: Option<u64>,
    row_bytes: usize,
    frame_rows: u64,
    /// The number of the next row.
    next: u64,
    /// When the first row of this reader came, and its number.
    began: Option<(Instant, u64)>,
}

impl RateReader {
    /// Creates a reader that ends before row number `end`, of rows of about `row_bytes` bytes.
    pub(super) fn new(
        rate: u64,
        end: Option<u64>,
        row_bytes: usize,
        start: Option<&SourcePosition>,
    ) -> Result<RateReader> {
        let next = match start.and_then(|position| position.get(SPLIT)) {
            None => 0,
            Some(text) => text.parse().map_err(|error| {
                Error::new(ErrorKind::State, format!("'{text}' is no position of a datagen table"))
                    .caused_by(error)
            })?,
        };
        let row_bytes = row_bytes.min(ROW_BYTES_MAX);
        let frame_rows = (FRAME_BYTES / (row_bytes as u64).max(1)).clamp(1, FRAME_ROWS);
        Ok(RateReader { rate, end, row_bytes, frame_rows, next, began: None })
    }

    /// Returns how many rows may have come once `elapsed` has passed: those of the ticks begun by then.
    fn due(rate: u64, elapsed: Duration) -> u64 {
        let nanos = elapsed.as_nanos();
        if rate < TICKS_PER_SECOND {
            // The first row comes at once, each other one a whole interval later.
            return u64::try_from(nanos * u128::from(rate) / 1_000_000_000)
                .unwrap_or(u64::MAX)
                .saturating_add(1);
        }
        let ticks = u64::try_from(nanos / TICK.as_nanos()).unwrap_or(u64::MAX).saturating_add(1);
        u64::try_from(u128::from(ticks) * u128::from(rate) / u128::from(TICKS_PER_SECOND)).unwrap_or(u64::MAX)
    }

    /// Returns when, after the beginning, row number `row` (counted from there) comes.
    fn time_of(rate: u64, row: u64) -> Duration {
        if rate < TICKS_PER_SECOND {
            let nanos = (u128::from(row) * 1_000_000_000).div_ceil(u128::from(rate));
            return Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        }
        // The first tick by whose end more than `row` rows have come.
        let tick = ((u128::from(row) + 1) * u128::from(TICKS_PER_SECOND)).div_ceil(u128::from(rate)) - 1;
        Duration::from_millis(u64::try_from(tick * TICK.as_millis()).unwrap_or(u64::MAX))
    }
}

#[async_trait]
impl SourceReader for RateReader {
    async fn next(&mut self) -> Result<SourceEvent> {
        let left = self.end.map_or(u64::MAX, |end| end.saturating_sub(self.next));
        if left == 0 {
            return Ok(SourceEvent::EndOfInput);
        }
        let (began, base) = *self.began.get_or_insert_with(|| (Instant::now(), self.next));
        loop {
            let come = self.next - base;
            let ready = Self::due(self.rate, began.elapsed()).saturating_sub(come);
            if ready > 0 {
                let count = ready.min(left).min(self.frame_rows);
                let first = self.next;
                self.next += count;
                let (count, row_bytes) = (count as usize, self.row_bytes);
                return Ok(SourceEvent::Frame(Frame::Generate { first, count, row_bytes }));
            }
            let due = began + Self::time_of(self.rate, come);
            sleep_until(due.max(Instant::now() + Duration::from_millis(1))).await;
        }
    }

    fn position(&self) -> SourcePosition {
        SourcePosition::from([(SPLIT.to_owned(), self.next.to_string())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connector::testing::block_on;
    use proptest::prelude::*;

    #[test]
    fn slow_rates_give_a_row_at_once_and_then_one_per_interval() {
        assert_eq!(RateReader::due(1, Duration::ZERO), 1);
        assert_eq!(RateReader::due(1, Duration::from_millis(999)), 1);
        assert_eq!(RateReader::due(1, Duration::from_secs(1)), 2);
        assert_eq!(RateReader::due(10_000, Duration::ZERO), 100);
        assert_eq!(RateReader::due(10_000, Duration::from_millis(25)), 300);
        assert_eq!(RateReader::time_of(2, 3), Duration::from_millis(1_500));
        // A tick's share of rows is rounded down, so a row at its end waits for the next one.
        assert_eq!(RateReader::time_of(150, 1), Duration::from_millis(10));
        assert_eq!(RateReader::time_of(150, 2), Duration::from_millis(10));
        assert_eq!(RateReader::time_of(150, 3), Duration::from_millis(20));
    }

    #[test]
    fn frames_are_bounded_and_positions_resume() {
        block_on(async {
            let mut reader = RateReader::new(1_000_000, Some(10_000), 8, None).unwrap();
            let SourceEvent::Frame(Frame::Generate { first, count, .. }) = reader.next().await.unwrap()
            else {
                panic!()
            };
            assert_eq!((first, count), (0, 8_192));
            let mut resumed = RateReader::new(1_000_000, Some(10_000), 8, Some(&reader.position())).unwrap();
            let SourceEvent::Frame(Frame::Generate { first, count, .. }) = resumed.next().await.unwrap()
            else {
                panic!()
            };
            assert_eq!((first, count), (8_192, 1_808));
            assert!(matches!(resumed.next().await.unwrap(), SourceEvent::EndOfInput));
        });
    }

    #[test]
    fn at_a_hundred_rows_a_second_every_row_comes_by_itself() {
        block_on(async {
            let mut reader = RateReader::new(100, Some(6), 8, None).unwrap();
            let began = Instant::now();
            let mut numbers = Vec::new();
            while let SourceEvent::Frame(Frame::Generate { first, count, .. }) = reader.next().await.unwrap()
            {
                // Whoever polls late gets what is due by then in one frame, and never more.
                assert!(first + count as u64 <= RateReader::due(100, began.elapsed()));
                numbers.extend(first..first + count as u64);
            }
            assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
            assert!(began.elapsed() >= Duration::from_millis(50));
        });
    }

    proptest! {
        #[test]
        fn a_row_is_due_at_its_time_and_not_before(rate in 1_u64..100_000, row in 0_u64..1_000_000) {
            let time = RateReader::time_of(rate, row);
            prop_assert!(RateReader::due(rate, time) > row);
            let exact = Duration::from_nanos((row * 1_000_000_000).div_ceil(rate));
            prop_assert!(time <= exact + TICK, "{:?} is later than {:?}", time, exact);
            if let Some(before) = time.checked_sub(TICK).filter(|_| rate >= TICKS_PER_SECOND) {
                prop_assert!(RateReader::due(rate, before) <= row);
            }
        }
    }
}
