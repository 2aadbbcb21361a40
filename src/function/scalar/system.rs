//! Functions about the query itself: types, names, and chance.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{Float64Type, Int32Type};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use rand::Rng;

use super::super::definition::Definition;
use super::super::operand::{Operand, map_text, map_values, try_map_values};
use super::super::typing::{Parameter, typed};
use super::super::{Argument, Call, Determinism, EvalContext, Inferred};
use crate::error::{Error, FlinkClass, Result};
use crate::schema::TypeRoot;

pub(super) static TYPEOF: Definition = Definition {
    name: "TYPEOF",
    doc: "Returns the type of the argument, which is not evaluated.",
    signatures: &["TYPEOF(<ANY>)", "TYPEOF(<ANY>, <BOOLEAN>)"],
    examples: &[("TYPEOF('abc')", "CHAR(3) NOT NULL"), ("TYPEOF(1 + CAST(NULL AS INT))", "INT")],
    infer: |arguments| {
        const PARAMETERS: [Parameter; 2] = [Parameter::Any, Parameter::Boolean];
        let mut inferred = typed(arguments, PARAMETERS.get(..arguments.len().max(1))?, TypeRoot::STRING)?;
        inferred.result.nullable = false;
        Some(inferred)
    },
    rewrite: |_, inferred: &Inferred, _: &Arc<EvalContext>| {
        let text = inferred.arguments.first()?.summary();
        Some(Expr::Literal(ScalarValue::Utf8(Some(text)), None))
    },
    ..Definition::DEFAULT
};

pub(super) static CURRENT_DATABASE: Definition = Definition {
    name: "CURRENT_DATABASE",
    doc: "Returns the name of the current database.",
    signatures: &["CURRENT_DATABASE()"],
    determinism: Determinism::QueryConstant,
    infer: |arguments| typed(arguments, &[], TypeRoot::STRING),
    invoke: |call, operands| {
        map_text(call, operands, |_, out| {
            out.push_str(&call.context.database);
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static UUID: Definition = Definition {
    name: "UUID",
    doc: "Returns a random UUID, another one for each row.",
    signatures: &["UUID()"],
    determinism: Determinism::Volatile,
    infer: |arguments| typed(arguments, &[], TypeRoot::Char(36)),
    invoke: |call, operands| {
        let mut buffer = uuid::Uuid::encode_buffer();
        map_text(call, operands, |_, out| {
            out.push_str(uuid::Uuid::new_v4().hyphenated().encode_lower(&mut buffer));
            Ok(true)
        })
    },
    ..Definition::DEFAULT
};

pub(super) static RAND: Definition = Definition {
    name: "RAND",
    doc: "Returns a random number from 0 up to but not 1; a seed gives the same row of numbers each time.",
    signatures: &["RAND()", "RAND(<INTEGER>)"],
    examples: &[("RAND() BETWEEN 0 AND 1", "TRUE")],
    determinism: Determinism::Volatile,
    infer: |arguments| {
        const PARAMETERS: [Parameter; 1] = [Parameter::Int];
        typed(arguments, PARAMETERS.get(..arguments.len())?, TypeRoot::Double)
    },
    invoke: rand_double,
    ..Definition::DEFAULT
};

pub(super) static RAND_INTEGER: Definition = Definition {
    name: "RAND_INTEGER",
    doc: "Returns a random integer from 0 up to but not the bound; a seed gives the same row of numbers each time.",
    signatures: &["RAND_INTEGER(<INTEGER>)", "RAND_INTEGER(<INTEGER>, <INTEGER>)"],
    examples: &[("RAND_INTEGER(1)", "0")],
    determinism: Determinism::Volatile,
    infer: |arguments: &[Argument<'_>]| {
        const PARAMETERS: [Parameter; 2] = [Parameter::Int; 2];
        typed(arguments, PARAMETERS.get(..arguments.len().max(1))?, TypeRoot::Int)
    },
    invoke: rand_integer,
    ..Definition::DEFAULT
};

/// Java's generator of random numbers, so that a seed gives the numbers that it gives in Flink.
struct JavaRandom(i64);

impl JavaRandom {
    const MASK: i64 = (1 << 48) - 1;

    fn new(seed: i64) -> JavaRandom {
        JavaRandom((seed ^ 0x5_DEEC_E66D) & JavaRandom::MASK)
    }

    fn next(&mut self, bits: u32) -> i32 {
        self.0 = self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB) & JavaRandom::MASK;
        (self.0 >> (48 - bits)) as i32
    }

    fn next_double(&mut self) -> f64 {
        let high = i64::from(self.next(26)) << 27;
        (high + i64::from(self.next(27))) as f64 / (1_i64 << 53) as f64
    }

    fn next_below(&mut self, bound: i32) -> i32 {
        let mut bits = self.next(31);
        if bound & (bound - 1) == 0 {
            return ((i64::from(bound) * i64::from(bits)) >> 31) as i32;
        }
        loop {
            let value = bits % bound;
            // Numbers of the last, incomplete round would favour small values.
            if bits.wrapping_sub(value).wrapping_add(bound - 1) >= 0 {
                return value;
            }
            bits = self.next(31);
        }
    }
}

/// Returns the seed of the first row; Flink's seeds are constants.
fn seed(operand: &Operand, row_count: usize) -> Result<Option<i64>> {
    let seeds = operand.values::<Int32Type>()?;
    Ok((row_count > 0 && !operand.is_null(0)).then(|| i64::from(seeds.get(0))))
}

// Limit: a seeded row of numbers starts again with each batch of rows.
fn rand_double(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    if let Some(operand) = operands.first() {
        let mut random = JavaRandom::new(seed(operand, call.row_count)?.unwrap_or_default());
        return map_values::<Float64Type>(call, operands, |_| random.next_double());
    }
    let mut random = rand::rng();
    map_values::<Float64Type>(call, operands, |_| random.random::<f64>())
}

fn rand_integer(call: &Call<'_>, operands: &[Operand]) -> Result<ArrayRef> {
    let Some(bounds) = operands.last() else { return Err(Error::internal("RAND_INTEGER takes a bound")) };
    let bounds = bounds.values::<Int32Type>()?;
    let check = |bound: i32| match bound {
        1.. => Ok(bound),
        _ => Err(Error::data("bound must be positive").class(FlinkClass::ILLEGAL_ARGUMENT)),
    };
    if let [first, _] = operands {
        let mut random = JavaRandom::new(seed(first, call.row_count)?.unwrap_or_default());
        return try_map_values::<Int32Type>(call, operands, |row| {
            Ok(Some(random.next_below(check(bounds.get(row))?)))
        });
    }
    let mut random = rand::rng();
    try_map_values::<Int32Type>(call, operands, |row| {
        Ok(Some(random.random_range(0..check(bounds.get(row))?)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_give_javas_numbers() {
        // What `new java.util.Random(42)` gives in a JDK: two of nextInt(), or nextDouble().
        let mut random = JavaRandom::new(42);
        assert_eq!((random.next(32), random.next(32)), (-1_170_105_035, 234_785_527));
        let mut random = JavaRandom::new(42);
        assert_eq!(random.next_double(), 0.727_563_680_032_868_1);
        let mut random = JavaRandom::new(42);
        assert_eq!((random.next_below(100), random.next_below(8)), (30, 0));
    }
}
