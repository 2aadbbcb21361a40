//! Rules that tests switch off to see that others notice. Without the feature `mutations`, which no build that is shipped has, every rule
//! holds.

use std::sync::LazyLock;

/// A rule without which rows are lost, come twice or are not what they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// A change counts exactly if the snapshot of its row did not see its transaction.
    Visibility,
    /// A large value that was not sent is taken from the row before, or read again.
    Toast,
    /// Only what checkpoints cover is acknowledged.
    Acknowledgement,
}

/// The environment variable that names the rule which is off.
const VARIABLE: &str = "LAKEHEAD_MUTATION";

static OFF: LazyLock<Option<Rule>> = LazyLock::new(|| match std::env::var(VARIABLE).as_deref() {
    Ok("visibility") => Some(Rule::Visibility),
    Ok("toast") => Some(Rule::Toast),
    Ok("acknowledgement") => Some(Rule::Acknowledgement),
    _ => None,
});

impl Rule {
    /// Returns whether the rule is switched off.
    #[inline]
    pub(super) fn is_off(self) -> bool {
        cfg!(feature = "mutations") && *OFF == Some(self)
    }
}
