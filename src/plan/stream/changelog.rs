//! Which kinds of rows flow where. First, upwards: what each operator may produce. Then, downwards from the sink: whether `-U` is
//! wanted, which is where sources get their ChangelogNormalize and DropUpdateBefore. A table that may be emptied always gets the
//! former, whatever is wanted.
//!
//! Flink has a third pass, for deletes that hold the key only. Here it is part of the second: only who can do without `-U` finds
//! rows by their key.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, TableReference};
use datafusion::logical_expr::Expr;

use super::calc::{calc, keep_columns};
use super::keys::key_holds;
use super::node::PlanNode;
use super::rank::update_fast_key;
use crate::changelog::{ChangelogMode, RowKind};
use crate::error::{Error, FlinkClass, Result};
use crate::plan::graph::{ChangelogNormalizeSpec, JoinKind, JoinSpec, OperatorSpec, TopNStrategy};
use crate::plan::provider::SourceTable;

/// Whether a consumer wants to see what an update replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateKind {
    /// `-U` with the row as it was, and whole deleted rows, equal to what was given: the consumer finds the row by all of its columns.
    Exact,
    /// The same, but metadata may tell of the change that takes a row back: the consumer shows changes, or looks for nothing.
    BeforeAndAfter,
    /// `+U` alone: the consumer finds the row by its key. Deleted rows are whole.
    OnlyAfter,
    /// `+U` alone, and of deleted rows no more than the key.
    OnlyKey,
}

impl UpdateKind {
    /// Returns whether `-U` is left out.
    fn is_upsert(self) -> bool {
        matches!(self, UpdateKind::OnlyAfter | UpdateKind::OnlyKey)
    }
}

/// Decides on `-U`.
#[derive(Debug, Clone, Copy)]
pub(super) struct UpdateKindInference {
    /// `table.exec.source.cdc-events-duplicate`: sources may repeat changes.
    pub(super) events_duplicate: bool,
}

/// Returns the kinds that an operator may produce, an update standing as `+U` alone. A source's are those it declares.
pub(super) fn produced_kinds(spec: &OperatorSpec, inputs: &[PlanNode]) -> ChangelogMode {
    let of = |input: &PlanNode| input.mode.without(RowKind::UpdateBefore);
    let all = || inputs.iter().map(of).reduce(ChangelogMode::union).unwrap_or(ChangelogMode::INSERT_ONLY);
    let grows_only = inputs.iter().all(PlanNode::is_insert_only);
    match spec {
        OperatorSpec::Source { table, .. } => table.source.changelog_mode(),
        OperatorSpec::Values { .. } => ChangelogMode::INSERT_ONLY,
        OperatorSpec::Calc { .. }
        | OperatorSpec::Union
        | OperatorSpec::Expand { .. }
        | OperatorSpec::Unnest { .. }
        | OperatorSpec::DropUpdateBefore
        | OperatorSpec::Sink(_)
        | OperatorSpec::Collect => all(),
        OperatorSpec::GroupAggregate(_) if grows_only => {
            ChangelogMode::of(&[RowKind::Insert, RowKind::UpdateAfter])
        }
        OperatorSpec::Join(JoinSpec { kind: JoinKind::Inner | JoinKind::Semi, .. }) => {
            all().union(ChangelogMode::INSERT_ONLY)
        }
        OperatorSpec::MultiJoin { is_optional, .. } if !is_optional.contains(&true) => {
            all().union(ChangelogMode::INSERT_ONLY)
        }
        OperatorSpec::Limit { .. }
        | OperatorSpec::Deduplicate { keeps_last: false, .. }
        | OperatorSpec::SetOperation { is_intersect: true, is_all: false }
            if grows_only =>
        {
            ChangelogMode::INSERT_ONLY
        }
        _ => ChangelogMode::UPSERT,
    }
}

impl UpdateKindInference {
    /// Makes a tree whose output has what is wanted; None if it cannot do without `-U`. With `-U` it always can.
    pub(super) fn satisfy(&self, node: &PlanNode, wanted: UpdateKind) -> Result<Option<PlanNode>> {
        // What never changes satisfies everybody; below it all must be decided still.
        let is_upsert = wanted.is_upsert() && node.has_updates();
        match &node.spec {
            OperatorSpec::Source { .. } => self.source(node, None, wanted).map(Some),
            OperatorSpec::Calc { condition, projection } => {
                self.calc(node, condition.as_ref(), projection.as_deref(), wanted)
            }
            OperatorSpec::Union => {
                let inputs = node.inputs.iter().map(|input| self.satisfy(input, wanted));
                let inputs: Option<Vec<PlanNode>> = inputs.collect::<Result<_>>()?;
                Ok(inputs.map(|inputs| decided(node, node.spec.clone(), inputs, wanted)))
            }
            // A row becomes several here, and those of its earlier version must go.
            OperatorSpec::Expand { .. } | OperatorSpec::Unnest { .. } if is_upsert => Ok(None),
            OperatorSpec::Join(JoinSpec { residual: Some(_), .. })
                if is_upsert && node.inputs.iter().any(PlanNode::has_updates) =>
            {
                Ok(None)
            }
            OperatorSpec::Join(join) if is_upsert => {
                let left = join.keys.iter().map(|key| key.left).collect();
                let right = join.keys.iter().map(|key| key.right).collect();
                self.upsert_join(node, &[left, right], wanted)
            }
            OperatorSpec::MultiJoin { keys, .. } if is_upsert => self.upsert_join(node, keys, wanted),
            OperatorSpec::TopN(top) => {
                if let Some(key) = update_fast_key(top, &node.inputs[0])
                    && let Some(input) = self.satisfy(&node.inputs[0], UpdateKind::OnlyAfter)?
                {
                    let mut spec = node.spec.clone();
                    if let OperatorSpec::TopN(top) = &mut spec {
                        top.strategy = TopNStrategy::UpdateFast(key);
                    }
                    return Ok(Some(decided(node, spec, vec![input], wanted)));
                }
                self.with_before_images(node, wanted).map(Some)
            }
            _ => self.with_before_images(node, wanted).map(Some),
        }
    }

    /// Makes a tree that shows what updates replace.
    pub(super) fn with_update_before(&self, node: &PlanNode) -> Result<PlanNode> {
        self.showing(node, UpdateKind::BeforeAndAfter)
    }

    /// Makes a tree that shows what updates replace exactly as it was given.
    pub(super) fn exact(&self, node: &PlanNode) -> Result<PlanNode> {
        self.showing(node, UpdateKind::Exact)
    }

    fn showing(&self, node: &PlanNode, wanted: UpdateKind) -> Result<PlanNode> {
        self.satisfy(node, wanted)?
            .ok_or_else(|| Error::internal("an operator cannot show what its updates replace"))
    }

    /// Gives an operator inputs that show what updates replace. It finds rows by their values.
    fn with_before_images(&self, node: &PlanNode, wanted: UpdateKind) -> Result<PlanNode> {
        let inputs = node.inputs.iter().map(|input| self.exact(input)).collect::<Result<_>>()?;
        Ok(decided(node, node.spec.clone(), inputs, wanted))
    }

    /// Decides for a filter and projection. A filter on other columns than the key's needs `-U`: where a new version no longer
    /// passes, the old one must go. Over a source of upserts the filter moves into the operator that completes them.
    fn calc(
        &self,
        node: &PlanNode,
        condition: Option<&Expr>,
        projection: Option<&[Expr]>,
        wanted: UpdateKind,
    ) -> Result<Option<PlanNode>> {
        let input = &node.inputs[0];
        let breaks_upserts = match condition {
            Some(condition) if input.has_updates() => {
                !key_holds(&input.unique_keys, &columns_of(condition, &input.schema)?)
            }
            _ => false,
        };
        if breaks_upserts && is_upsert_source(input) {
            let complete = self.source(input, condition, wanted)?;
            let mode = complete.mode;
            let calc = calc(complete, None, projection.map(<[Expr]>::to_vec), &node.schema)?;
            return Ok(Some(PlanNode { mode, ..calc }));
        }
        if breaks_upserts && wanted.is_upsert() {
            return Ok(None);
        }
        if wanted == UpdateKind::Exact
            && let Some(condition) = condition
            && chooses_changes(input, condition)?
        {
            return self.chosen(node).map(Some);
        }
        let Some(input) = self.satisfy(input, wanted)? else { return Ok(None) };
        let mut decided = PlanNode { inputs: vec![input], ..node.clone() };
        decided.mode = decided.inputs[0].mode;
        Ok(Some(decided))
    }

    /// Decides for a filter that looks at changes: it chooses among them, as where they are only shown, and the rows that this makes are
    /// completed behind it.
    fn chosen(&self, node: &PlanNode) -> Result<PlanNode> {
        let with_key = with_key_behind(node)?;
        let chosen = self.with_update_before(with_key.as_ref().unwrap_or(node))?;
        let keys = chosen.unique_keys.first().cloned().unwrap_or_default();
        let spec = ChangelogNormalizeSpec { keys, condition: None, emits_update_before: true };
        let schema = Arc::clone(&chosen.schema);
        let mut complete = PlanNode::new(OperatorSpec::ChangelogNormalize(spec), vec![chosen], schema);
        complete.mode = with_updates(complete.mode, UpdateKind::Exact);
        keep_columns(complete, node.column_count())
    }

    /// Decides for a join whose consumer wants upserts: a side may do so too if its updates stay with their join key.
    fn upsert_join(
        &self,
        node: &PlanNode,
        keys: &[Vec<usize>],
        wanted: UpdateKind,
    ) -> Result<Option<PlanNode>> {
        let mut inputs = Vec::with_capacity(keys.len());
        for (input, keys) in node.inputs.iter().zip(keys) {
            if input.has_updates() && !key_holds(&input.unique_keys, keys) {
                return Ok(None);
            }
            match self.satisfy(input, wanted)? {
                Some(input) => inputs.push(input),
                None => return Ok(None),
            }
        }
        Ok(Some(decided(node, node.spec.clone(), inputs, wanted)))
    }

    /// Decides for a source, with a filter that its complete rows must pass.
    fn source(&self, source: &PlanNode, condition: Option<&Expr>, wanted: UpdateKind) -> Result<PlanNode> {
        let OperatorSpec::Source { table, columns } = &source.spec else {
            return Err(Error::internal("something that is no source was taken for one"));
        };
        if !source.has_updates() {
            return Ok(source.clone());
        }
        let is_complete = source.mode.contains(RowKind::UpdateBefore);
        let dropped = |source: &PlanNode| {
            PlanNode::new(OperatorSpec::DropUpdateBefore, vec![source.clone()], Arc::clone(&source.schema))
        };
        let may_repeat = self.events_duplicate && table.key_columns().is_some();
        let of_change = table.columns_of_change(columns);
        // Somebody must know which rows go when the table is emptied.
        if condition.is_none() && !table.source.may_be_cleared() {
            match wanted {
                UpdateKind::Exact if is_complete && !may_repeat && of_change.is_empty() => {
                    return Ok(source.clone());
                }
                UpdateKind::Exact if is_complete && table.key_columns().is_none() => {
                    return Err(no_exact_rows(table, &of_change));
                }
                UpdateKind::BeforeAndAfter if is_complete && !may_repeat => return Ok(source.clone()),
                UpdateKind::OnlyAfter | UpdateKind::OnlyKey if is_complete => return Ok(dropped(source)),
                // A row to delete has nothing but its key, so that the other columns must be able to be NULL.
                UpdateKind::OnlyKey if others_are_nullable(source) => return Ok(source.clone()),
                _ => {}
            }
        }
        let count = columns.len();
        let source = with_key_columns(source)?;
        let OperatorSpec::Source { table, columns } = &source.spec else {
            return Err(Error::internal("a source with its key is no source"));
        };
        let keys = table.key_columns().unwrap_or_default();
        let keys: Vec<usize> =
            keys.iter().filter_map(|key| columns.iter().position(|column| column == key)).collect();
        if keys.is_empty() {
            return Err(Error::internal(format!("the rows of '{}' are to be known by no key", table.name)));
        }
        let spec = OperatorSpec::ChangelogNormalize(ChangelogNormalizeSpec {
            keys,
            condition: condition.cloned(),
            emits_update_before: !wanted.is_upsert(),
        });
        let schema = Arc::clone(&source.schema);
        let input = if is_complete { dropped(&source) } else { source };
        let mut node = PlanNode::new(spec, vec![input], schema);
        node.mode = with_updates(node.mode, wanted);
        keep_columns(node, count)
    }
}

/// Puts a node together again over inputs that are decided, and writes down what that means for it.
fn decided(node: &PlanNode, mut spec: OperatorSpec, inputs: Vec<PlanNode>, wanted: UpdateKind) -> PlanNode {
    let emits_update_before = !wanted.is_upsert();
    let grows_only = inputs.iter().all(PlanNode::is_insert_only);
    match &mut spec {
        OperatorSpec::GroupAggregate(aggregate) => {
            aggregate.input_retracts = !grows_only;
            aggregate.emits_update_before = emits_update_before;
        }
        OperatorSpec::TopN(top) => {
            top.emits_update_before = emits_update_before;
            if grows_only {
                top.strategy = TopNStrategy::AppendFast;
            }
        }
        OperatorSpec::Join(join) => {
            for (side, input) in join.sides.iter_mut().zip(&inputs) {
                side.is_insert_only = input.is_insert_only();
            }
        }
        _ => {}
    }
    let mode = match spec {
        // These pass kinds on and make none.
        OperatorSpec::Union | OperatorSpec::Expand { .. } | OperatorSpec::Unnest { .. } => {
            inputs.iter().map(|input| input.mode).reduce(ChangelogMode::union).unwrap_or(node.mode)
        }
        _ => with_updates(node.mode, wanted),
    };
    PlanNode { spec, inputs, schema: Arc::clone(&node.schema), unique_keys: node.unique_keys.clone(), mode }
}

/// Adds `-U` where there are updates and it is wanted.
fn with_updates(mode: ChangelogMode, wanted: UpdateKind) -> ChangelogMode {
    let has_before = !wanted.is_upsert() && mode.contains(RowKind::UpdateAfter);
    if has_before { mode.union(ChangelogMode::of(&[RowKind::UpdateBefore])) } else { mode }
}

/// Lets a calc over a source keep the source's key behind its columns; None if its columns have a key.
fn with_key_behind(node: &PlanNode) -> Result<Option<PlanNode>> {
    let OperatorSpec::Calc { condition, projection } = &node.spec else { return Ok(None) };
    if !node.unique_keys.is_empty() {
        return Ok(None);
    }
    let given = node.inputs[0].schema.columns().into_iter().map(Expr::Column);
    let mut exprs = projection.clone().unwrap_or_else(|| given.collect());
    let source = with_key_columns(&node.inputs[0])?;
    let mut fields: Vec<(Option<TableReference>, FieldRef)> =
        node.schema.iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field))).collect();
    for (number, column) in source.unique_keys.concat().into_iter().enumerate() {
        let name = format!("$key{number}");
        fields.push((None, Arc::new(source.schema.field(column).as_ref().clone().with_name(&name))));
        exprs.push(Expr::from(source.schema.qualified_field(column)).alias(name));
    }
    let schema = DFSchema::new_with_metadata(fields, HashMap::new())?.into();
    let mode = source.mode;
    let with_key = calc(source, condition.clone(), Some(exprs), &schema)?;
    Ok(Some(PlanNode { mode, ..with_key }))
}

/// Returns whether a filter over a complete source with a key looks at what tells of changes.
fn chooses_changes(input: &PlanNode, condition: &Expr) -> Result<bool> {
    let OperatorSpec::Source { table, columns } = &input.spec else { return Ok(false) };
    if !input.mode.contains(RowKind::UpdateBefore) || table.key_columns().is_none() {
        return Ok(false);
    }
    let of_change = table.columns_of_change(columns);
    let read = columns_of(condition, &input.schema)?;
    Ok(read.iter().any(|column| of_change.contains(&columns[*column])))
}

/// Makes Flink's error for metadata of changes below an operator that finds rows by their values, where no key completes them.
fn no_exact_rows(table: &SourceTable, of_change: &[usize]) -> Error {
    let names: Vec<&str> =
        of_change.iter().map(|column| table.read_schema().field(*column).name().as_str()).collect();
    Error::validation(format!(
        "The metadata column(s): '{}' in cdc source may cause wrong result or error on downstream operators, please consider removing these columns or use a non-cdc source that only has insert messages.",
        names.join(", ")
    ))
    .class(FlinkClass::TABLE)
    .hint(format!(
        "Declare PRIMARY KEY (…) NOT ENFORCED for '{}': with a key, a row that is taken back has the values with which it was given.",
        table.name
    ))
}

/// Returns whether a node is a source of upserts.
fn is_upsert_source(node: &PlanNode) -> bool {
    matches!(node.spec, OperatorSpec::Source { .. })
        && node.has_updates()
        && !node.mode.contains(RowKind::UpdateBefore)
}

/// Returns whether all columns but the key's may be NULL.
fn others_are_nullable(source: &PlanNode) -> bool {
    let key = source.unique_keys.first().map_or(&[][..], Vec::as_slice);
    let fields = source.schema.fields().iter().enumerate();
    fields.into_iter().all(|(column, field)| field.is_nullable() || key.contains(&column))
}

/// Lets a source read its key too: the columns that are missing come last.
fn with_key_columns(source: &PlanNode) -> Result<PlanNode> {
    let OperatorSpec::Source { table, columns } = &source.spec else { return Ok(source.clone()) };
    let key = table.key_columns().unwrap_or_default();
    let missing: Vec<usize> = key.into_iter().filter(|key| !columns.contains(key)).collect();
    let known = source.schema.iter().map(|(qualifier, field)| (qualifier.cloned(), Arc::clone(field)));
    let added = missing.iter().map(|column| {
        (Some(TableReference::bare("$key")), Arc::clone(&table.read_schema().fields()[*column]))
    });
    let schema = DFSchema::new_with_metadata(known.chain(added).collect(), HashMap::new())?;
    let columns = [columns.as_slice(), &missing].concat();
    let mode = source.mode;
    let source =
        PlanNode::new(OperatorSpec::Source { table: table.clone(), columns }, Vec::new(), schema.into());
    Ok(PlanNode { mode, ..source })
}

/// Returns the columns that an expression reads.
pub(super) fn columns_of(expr: &Expr, schema: &DFSchema) -> Result<Vec<usize>> {
    let mut columns = Vec::new();
    expr.apply(|part| {
        if let Expr::Column(column) = part {
            columns.push(schema.index_of_column(column)?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    columns.sort_unstable();
    columns.dedup();
    Ok(columns)
}
