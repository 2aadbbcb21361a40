//! What a type of the server is to us: the few classes in which types are read alike.

use tokio_postgres::types::Type;

use crate::connector::postgres::pg_types::{PgTypes, TypeKind};

/// A type of the server, domains taken off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::connector::postgres) struct SourceType {
    /// Its number.
    pub(in crate::connector::postgres) oid: u32,
    /// What it is declared with; -1 if nothing.
    pub(in crate::connector::postgres) type_modifier: i32,
    /// Its name for messages, that of the domain if it is one.
    pub(in crate::connector::postgres) name: String,
    /// How it is read.
    pub(super) class: SourceClass,
}

/// Types that are read alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SourceClass {
    Bool,
    /// One bit.
    Bit,
    /// Whole numbers, those that number things included.
    Integer,
    Float,
    Numeric,
    Money,
    /// Texts, from which values of other types may be read while they look like them.
    Text,
    Bytes,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Interval,
    Array(Box<SourceType>, u8),
    Hstore,
    /// What is read as text and as nothing else.
    Other,
}

impl SourceType {
    /// Looks a type up. One that has been dropped since is read as text.
    pub(in crate::connector::postgres) fn new(types: &PgTypes, oid: u32, type_modifier: i32) -> SourceType {
        let name = types.name(oid);
        let (oid, type_modifier) = types.below_domains(oid, type_modifier);
        let class = match types.get(oid) {
            Some(known) => match known.kind {
                TypeKind::Array { element, delimiter } => {
                    SourceClass::Array(Box::new(SourceType::new(types, element, type_modifier)), delimiter)
                }
                TypeKind::Base => base_class(oid, type_modifier, &known.name),
                _ => SourceClass::Other,
            },
            None => SourceClass::Text,
        };
        SourceType { oid, type_modifier, name, class }
    }

    /// Returns precision and scale that a numeric type is declared with.
    pub(in crate::connector::postgres) fn precision_and_scale(&self) -> Option<(i32, i32)> {
        if self.class != SourceClass::Numeric || self.type_modifier < 4 {
            return None;
        }
        let modifier = self.type_modifier - 4;
        // The scale is a signed number of 11 bits.
        let scale = ((modifier & 0x7ff) ^ 1024) - 1024;
        Some((modifier >> 16 & 0xffff, scale))
    }

    /// Returns the type as it is declared on the server, with what stands in brackets.
    fn declared(&self) -> String {
        if let SourceClass::Array(element, _) = &self.class {
            return format!("{}[]", element.declared());
        }
        let Some(known) = Type::from_oid(self.oid).filter(|known| known.name() == self.name) else {
            return self.name.clone();
        };
        let brackets = match known {
            _ if self.type_modifier < 0 => None,
            Type::NUMERIC => {
                self.precision_and_scale().map(|(precision, scale)| format!("{precision},{scale}"))
            }
            // A length is kept with that of its own header.
            Type::VARCHAR | Type::BPCHAR => Some((self.type_modifier - 4).to_string()),
            Type::BIT | Type::VARBIT | Type::TIME | Type::TIMETZ | Type::TIMESTAMP | Type::TIMESTAMPTZ => {
                Some(self.type_modifier.to_string())
            }
            _ => None,
        };
        brackets.map_or_else(|| self.name.clone(), |brackets| format!("{}({brackets})", self.name))
    }

    /// Returns how this type and the one before it are told apart, which differ in something.
    pub(in crate::connector::postgres) fn told_from(&self, before: &SourceType) -> (String, String) {
        let (old, new) = (before.declared(), self.declared());
        if old != new {
            return (old, new);
        }
        // Made anew under the same name, or different in what is not shown.
        let numbered = |name: String, of: &SourceType| {
            format!("{name} (type {}, modifier {})", of.oid, of.type_modifier)
        };
        (numbered(old, before), numbered(new, self))
    }

    /// Returns how a column of this type is best declared.
    pub(in crate::connector::postgres) fn suggestion(&self) -> String {
        match &self.class {
            SourceClass::Bool | SourceClass::Bit => "BOOLEAN".to_owned(),
            SourceClass::Integer if self.oid == Type::INT2.oid() => "SMALLINT".to_owned(),
            SourceClass::Integer if self.oid == Type::INT4.oid() => "INT".to_owned(),
            SourceClass::Integer => "BIGINT".to_owned(),
            SourceClass::Float if self.oid == Type::FLOAT4.oid() => "FLOAT".to_owned(),
            SourceClass::Float => "DOUBLE".to_owned(),
            SourceClass::Numeric => match self.precision_and_scale() {
                Some((precision @ 1..=38, scale)) if (0..=precision).contains(&scale) => {
                    format!("DECIMAL({precision}, {scale})")
                }
                Some(_) => "STRING".to_owned(),
                None => "DECIMAL(38, 18) or STRING".to_owned(),
            },
            SourceClass::Money => "DECIMAL(19, 2)".to_owned(),
            SourceClass::Text | SourceClass::Interval | SourceClass::Other => "STRING".to_owned(),
            SourceClass::Bytes => "BYTES".to_owned(),
            SourceClass::Date => "DATE".to_owned(),
            SourceClass::Time => "TIME(3)".to_owned(),
            SourceClass::Timestamp => "TIMESTAMP(6)".to_owned(),
            SourceClass::TimestampTz => "TIMESTAMP_LTZ(6)".to_owned(),
            SourceClass::Array(element, _) => format!("ARRAY<{}>", element.suggestion()),
            SourceClass::Hstore => "MAP<STRING, STRING>".to_owned(),
        }
    }
}

/// Returns the class of a type that is made of nothing.
fn base_class(oid: u32, type_modifier: i32, name: &str) -> SourceClass {
    let Some(known) = Type::from_oid(oid) else {
        return match name {
            "citext" => SourceClass::Text,
            "hstore" => SourceClass::Hstore,
            _ => SourceClass::Other,
        };
    };
    match known {
        Type::BOOL => SourceClass::Bool,
        Type::BIT if type_modifier == 1 => SourceClass::Bit,
        Type::INT2 | Type::INT4 | Type::INT8 | Type::OID | Type::XID | Type::CID | Type::XID8 => {
            SourceClass::Integer
        }
        Type::FLOAT4 | Type::FLOAT8 => SourceClass::Float,
        Type::NUMERIC => SourceClass::Numeric,
        Type::MONEY => SourceClass::Money,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME => SourceClass::Text,
        Type::BYTEA => SourceClass::Bytes,
        Type::DATE => SourceClass::Date,
        Type::TIME => SourceClass::Time,
        Type::TIMESTAMP => SourceClass::Timestamp,
        Type::TIMESTAMPTZ => SourceClass::TimestampTz,
        Type::INTERVAL => SourceClass::Interval,
        _ => SourceClass::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numeric(type_modifier: i32) -> SourceType {
        let (oid, name, class) = (Type::NUMERIC.oid(), "numeric".to_owned(), SourceClass::Numeric);
        SourceType { oid, type_modifier, name, class }
    }

    #[test]
    fn a_type_is_told_from_the_one_before_whatever_differs() {
        let base = |known: Type, type_modifier: i32| {
            let name = known.name().to_owned();
            let class = base_class(known.oid(), type_modifier, &name);
            SourceType { oid: known.oid(), type_modifier, name, class }
        };
        let array = |element: SourceType| SourceType {
            oid: Type::NUMERIC_ARRAY.oid(),
            type_modifier: element.type_modifier,
            name: "numeric[]".to_owned(),
            class: SourceClass::Array(Box::new(element), b','),
        };
        let enumerated =
            |oid| SourceType { oid, type_modifier: -1, name: "mood".to_owned(), class: SourceClass::Other };
        for (before, now, expected) in [
            (numeric(655_366), numeric(655_368), ("numeric(10,2)", "numeric(10,4)")),
            (numeric(655_366), numeric(-1), ("numeric(10,2)", "numeric")),
            (base(Type::BPCHAR, 9), base(Type::BPCHAR, 14), ("bpchar(5)", "bpchar(10)")),
            (base(Type::VARCHAR, 9), base(Type::TEXT, -1), ("varchar(5)", "text")),
            (base(Type::TIMESTAMP, 0), base(Type::TIMESTAMP, 6), ("timestamp(0)", "timestamp(6)")),
            (base(Type::BIT, 1), base(Type::BIT, 8), ("bit(1)", "bit(8)")),
            (array(numeric(655_366)), array(numeric(-1)), ("numeric(10,2)[]", "numeric[]")),
            (
                base(Type::INTERVAL, 0x7fff_0003),
                base(Type::INTERVAL, -1),
                ("interval (type 1186, modifier 2147418115)", "interval (type 1186, modifier -1)"),
            ),
            (
                enumerated(16_400),
                enumerated(16_500),
                ("mood (type 16400, modifier -1)", "mood (type 16500, modifier -1)"),
            ),
        ] {
            let (old, new) = now.told_from(&before);
            assert_eq!((old.as_str(), new.as_str()), expected);
        }
    }

    #[test]
    fn scales_may_be_negative_and_precisions_beyond_ours() {
        // numeric(10,2), numeric(38,18), numeric(3,-2), numeric(50,2), numeric(2,4): as the catalog has them.
        let modifiers = [655_366, 2_490_390, 198_658, 3_276_806, 131_080];
        let found = modifiers.map(|modifier| numeric(modifier).precision_and_scale());
        assert_eq!(found, [Some((10, 2)), Some((38, 18)), Some((3, -2)), Some((50, 2)), Some((2, 4))]);
        let declared = modifiers.map(|modifier| numeric(modifier).suggestion());
        assert_eq!(declared, ["DECIMAL(10, 2)", "DECIMAL(38, 18)", "STRING", "STRING", "STRING"]);
        assert_eq!(numeric(-1).suggestion(), "DECIMAL(38, 18) or STRING");
    }
}
