//! How far the scans of a batch query are, for whoever waits for its rows.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;

use super::provider::scan_bytes;

/// The metric of bytes that were read, as DataFusion's own scans call it.
pub(super) const BYTES_SCANNED: &str = "bytes_scanned";
/// The metric of rows that a scan read and left out.
const ROWS_LEFT_OUT: &str = "pushdown_rows_pruned";

/// The scans of a query that runs.
#[derive(Debug, Clone)]
pub(crate) struct ScanProgress {
    scans: Vec<Scan>,
}

/// What is known of a scan.
#[derive(Debug, Clone)]
struct Scan {
    plan: Arc<dyn ExecutionPlan>,
    rows: Option<u64>,
    bytes: Option<u64>,
}

/// How much was read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct ScannedSoFar {
    /// The rows.
    pub(crate) rows: u64,
    /// The bytes; 0 where nobody counts them.
    pub(crate) bytes: u64,
    /// Which part of all that is, between 0 and 1, if that is known.
    pub(crate) fraction: Option<f64>,
}

impl ScanProgress {
    /// Finds the scans of a plan.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> ScanProgress {
        let mut scans = Vec::new();
        collect(plan, &mut scans);
        ScanProgress { scans }
    }

    /// Returns how much was read.
    pub(crate) fn read(&self) -> ScannedSoFar {
        let metrics: Vec<MetricsSet> =
            self.scans.iter().map(|scan| scan.plan.metrics().unwrap_or_default()).collect();
        let read = |metrics: &MetricsSet| {
            let left_out = metrics.sum_by_name(ROWS_LEFT_OUT).map_or(0, |value| value.as_usize());
            (metrics.output_rows().unwrap_or(0) + left_out) as u64
        };
        let rows: u64 = metrics.iter().map(read).sum();
        let bytes = metrics.iter().filter_map(|metrics| metrics.sum_by_name(BYTES_SCANNED));
        let bytes = bytes.map(|value| value.as_usize() as u64).sum();
        let total = |of: fn(&Scan) -> Option<u64>| self.scans.iter().map(of).sum::<Option<u64>>();
        let part = |read: u64, total: u64| (total > 0).then(|| (read as f64 / total as f64).min(1.0));
        // Rows say more than bytes: of a file in columns only some bytes are read.
        let fraction = match (total(|scan| scan.rows), total(|scan| scan.bytes)) {
            (Some(total), _) => part(rows, total),
            (None, Some(total)) => part(bytes, total),
            (None, None) => None,
        };
        ScannedSoFar { rows, bytes, fraction }
    }
}

/// Collects the leaves of a plan.
fn collect(plan: &Arc<dyn ExecutionPlan>, scans: &mut Vec<Scan>) {
    let children = plan.children();
    if children.is_empty() {
        let statistics = plan.partition_statistics(None).ok();
        let rows = statistics.and_then(|statistics| match statistics.num_rows {
            Precision::Exact(rows) | Precision::Inexact(rows) => Some(rows as u64),
            Precision::Absent => None,
        });
        scans.push(Scan { plan: Arc::clone(plan), rows, bytes: scan_bytes(plan.as_ref()) });
    }
    for child in children {
        collect(child, scans);
    }
}
