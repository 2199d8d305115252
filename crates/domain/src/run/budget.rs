//! What a run may use at most, and whether it went beyond.
//!
//! What was used is whatever the backend says; nothing is estimated here, and no price is known.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a run may use at most. Exactly so much is fine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(!from))]
#[serde(rename_all = "camelCase", from = "Written")]
pub struct Budget {
    /// What it may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<Dollars>,
    /// How many tokens, in and out together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

/// How a budget may be written: an amount alone is what it may cost.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected an amount in US dollars as a text, as in \"2.50\", or an object with costUsd, tokens or both"
)]
enum Written {
    Cost(Dollars),
    Limits(Limits),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Limits {
    #[serde(default)]
    cost_usd: Option<Dollars>,
    #[serde(default)]
    tokens: Option<u64>,
}

impl From<Written> for Budget {
    fn from(written: Written) -> Self {
        match written {
            Written::Cost(cost) => Budget { cost_usd: Some(cost), tokens: None },
            Written::Limits(Limits { cost_usd, tokens }) => Budget { cost_usd, tokens },
        }
    }
}

impl Budget {
    /// The highest limit of tokens.
    pub const TOKENS_MAX: u64 = 1_000_000_000_000;

    /// Whether it limits nothing.
    pub fn is_empty(&self) -> bool {
        *self == Budget::default()
    }

    /// Of each limit the lower.
    #[must_use]
    pub fn within(self, other: Budget) -> Budget {
        fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        Budget { cost_usd: lower(self.cost_usd, other.cost_usd), tokens: lower(self.tokens, other.tokens) }
    }

    /// The limit that was gone beyond, if one was.
    pub fn exceeded(&self, usage: &Usage) -> Option<Exceeded> {
        let tokens = self.tokens.zip(usage.tokens()).filter(|(allowed, used)| used > allowed);
        let cost = self.cost_usd.zip(usage.cost_usd.map(Dollars::rounded));
        let cost = cost.filter(|(allowed, used)| used > allowed);
        match (cost, tokens) {
            (Some((allowed, used)), _) => Some(Exceeded::CostUsd { allowed, used }),
            (None, Some((allowed, used))) => Some(Exceeded::Tokens { allowed, used }),
            (None, None) => None,
        }
    }
}

/// What backends of a kind tell of what they use: only that can be limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metered {
    /// Tokens.
    pub tokens: bool,
    /// What it costs.
    pub cost: bool,
}

impl Metered {
    /// Of this kind. One that is not named here tells nothing.
    pub fn of(backend_kind: &str) -> Self {
        match backend_kind {
            "scripted" => Metered { tokens: true, cost: true },
            "codex-app-server-stdio" | "native" => Metered { tokens: true, cost: false },
            _ => Metered::default(),
        }
    }
}

impl fmt::Display for Metered {
    /// Which limits can be set, in a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Metered { tokens: true, cost: true } => "It can have a limit of costUsd, tokens or both.",
            Metered { tokens: true, cost: false } => "It can have a limit of tokens.",
            Metered { tokens: false, cost: true } => "It can have a limit of costUsd.",
            Metered { tokens: false, cost: false } => "It can have no budget.",
        })
    }
}

/// A limit that a run went beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "limit", rename_all = "camelCase")]
pub enum Exceeded {
    /// It cost more.
    CostUsd {
        /// What it could.
        allowed: Dollars,
        /// What it did.
        used: Dollars,
    },
    /// It used more tokens.
    Tokens {
        /// How many it could.
        allowed: u64,
        /// How many it did.
        used: u64,
    },
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exceeded::CostUsd { allowed, used } => {
                write!(f, "The run cost {used} US dollars, and its budget is {allowed}.")
            }
            Exceeded::Tokens { allowed, used } => {
                write!(f, "The run used {used} tokens, and its budget is {allowed}.")
            }
        }
    }
}

/// What a backend used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens in.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input_tokens: Option<u64>,
    /// Tokens out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub output_tokens: Option<u64>,
    /// What it cost, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cost_usd: Option<f64>,
}

impl Usage {
    /// All tokens together, as far as they are known.
    pub fn tokens(&self) -> Option<u64> {
        match (self.input_tokens, self.output_tokens) {
            (None, None) => None,
            (input, output) => Some(input.unwrap_or_default().saturating_add(output.unwrap_or_default())),
        }
    }

    /// What was used by the later of two reports. It is never less than by the earlier one, and what only that one said still
    /// holds.
    #[must_use]
    pub fn then(self, later: Usage) -> Usage {
        let cost = self.cost_usd.into_iter().chain(later.cost_usd).reduce(f64::max);
        Usage {
            input_tokens: self.input_tokens.max(later.input_tokens),
            output_tokens: self.output_tokens.max(later.output_tokens),
            cost_usd: cost,
        }
    }
}

/// An amount of US dollars, exact to a millionth. It is written as a text, never as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(into = "String", try_from = "String")]
pub struct Dollars {
    millionths: u64,
}

/// A text that is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an amount in US dollars as a text, as in \"2.50\"")]
pub struct InvalidDollars;

impl Dollars {
    /// A number to the nearest millionth, so that sums of tenths compare as they are written. What is no amount is none.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of a float saturates"
    )]
    pub fn rounded(amount: f64) -> Self {
        Dollars { millionths: (amount * 1e6).round() as u64 }
    }
}

impl FromStr for Dollars {
    type Err = InvalidDollars;

    /// Digits, and up to six after a point.
    fn from_str(text: &str) -> Result<Self, InvalidDollars> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !digits(part) || part.len() > 6 {
            return Err(InvalidDollars);
        }
        let part: u64 = format!("{part:0<6}").parse().map_err(|_| InvalidDollars)?;
        let whole: u64 = whole.parse().map_err(|_| InvalidDollars)?;
        let millionths = whole.checked_mul(1_000_000).and_then(|whole| whole.checked_add(part));
        millionths.map(|millionths| Dollars { millionths }).ok_or(InvalidDollars)
    }
}

impl TryFrom<String> for Dollars {
    type Error = InvalidDollars;

    fn try_from(text: String) -> Result<Self, InvalidDollars> {
        text.parse()
    }
}

impl From<Dollars> for String {
    fn from(amount: Dollars) -> Self {
        amount.to_string()
    }
}

impl fmt::Display for Dollars {
    /// With cents, and further digits only where there are some.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = format!("{:06}", self.millionths % 1_000_000);
        let (cents, rest) = part.split_at(2);
        write!(f, "{}.{cents}{}", self.millionths / 1_000_000, rest.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dollars(text: &str) -> Dollars {
        text.parse().unwrap()
    }

    #[test]
    fn an_amount_is_read_exactly_and_written_with_cents() {
        for (text, written) in [
            ("2.50", "2.50"),
            ("2.5", "2.50"),
            ("0", "0.00"),
            ("007", "7.00"),
            ("0.000001", "0.000001"),
            ("1.234500", "1.2345"),
            ("18446744073709.551615", "18446744073709.551615"),
        ] {
            assert_eq!(dollars(text).to_string(), written);
        }
        for text in ["", ".5", "1.", "1,5", "-1", "1e3", "$1", "0.0000001", "18446744073709.551616", "١"] {
            assert_eq!(text.parse::<Dollars>(), Err(InvalidDollars), "{text}");
        }
        assert!(dollars("9.99") < dollars("10"), "by amount, not by text");
    }

    #[test]
    fn a_budget_is_limits_or_an_amount_alone() {
        let read = |json| serde_json::from_value::<Budget>(json);
        let cost_usd = Some(dollars("2.50"));
        assert_eq!(read(json!("2.5")).unwrap(), Budget { cost_usd, tokens: None });
        let both = Budget { cost_usd, tokens: Some(200_000) };
        assert_eq!(serde_json::to_value(both).unwrap(), json!({ "costUsd": "2.50", "tokens": 200_000 }));
        assert_eq!(read(serde_json::to_value(both).unwrap()).unwrap(), both);
        for wrong in [json!(2.5), json!("much"), json!({ "costUsd": 2 }), json!({ "token": 1 }), json!(true)]
        {
            let error = read(wrong).unwrap_err().to_string();
            assert!(error.contains("costUsd, tokens or both"), "{error}");
        }
    }

    #[test]
    fn c16_exactly_the_limit_is_fine_and_a_millionth_or_a_token_more_is_not() {
        let used = |tokens: (u64, u64), cost: f64| Usage {
            input_tokens: Some(tokens.0),
            output_tokens: Some(tokens.1),
            cost_usd: Some(cost),
        };
        let budget = Budget { cost_usd: Some(dollars("0.30")), tokens: Some(100) };
        assert_eq!(budget.exceeded(&used((60, 40), 0.1 + 0.2)), None, "tenths add up");
        assert_eq!(
            budget.exceeded(&used((60, 41), 0.0)),
            Some(Exceeded::Tokens { allowed: 100, used: 101 }),
            "what goes in and what comes out count together"
        );
        let (allowed, more) = (dollars("0.30"), dollars("0.300001"));
        assert_eq!(
            budget.exceeded(&used((60, 41), 0.300_001)),
            Some(Exceeded::CostUsd { allowed, used: more })
        );
        assert_eq!(Budget::default().exceeded(&used((u64::MAX, 9), f64::MAX)), None);
        assert_eq!(budget.exceeded(&Usage::default()), None, "what nobody reports is not beyond");
        let cost_usd = Some(-1.0);
        assert_eq!(budget.exceeded(&Usage { cost_usd, ..Usage::default() }), None);
    }

    #[test]
    fn what_was_used_never_gets_less_and_is_not_forgotten() {
        let tokens = |input| Usage { input_tokens: Some(input), ..Usage::default() };
        let cost = Usage { cost_usd: Some(0.5), output_tokens: Some(7), ..Usage::default() };
        let all = Usage { input_tokens: Some(9), ..cost };
        assert_eq!([tokens(9), cost, tokens(2)].into_iter().reduce(Usage::then), Some(all));
        assert_eq!((tokens(9).tokens(), all.tokens(), Usage::default().tokens()), (Some(9), Some(16), None));
    }

    #[test]
    fn of_two_budgets_the_lower_of_each_limit_counts() {
        let one = Budget { cost_usd: Some(dollars("1")), tokens: None };
        let other = Budget { cost_usd: Some(dollars("2")), tokens: Some(5) };
        let both = Budget { cost_usd: Some(dollars("1")), tokens: Some(5) };
        assert_eq!((one.within(other), other.within(one)), (both, both));
    }
}
