//! Which account pays for a turn.
//!
//! Eligible accounts first (the model and the resolved dialect are theirs, no limit stands), then the account that the
//! conversation is on, then what is left in the binding window weighted by the turns it carries now. An account
//! whose usage is unknown is asked last, because unknown is not headroom.
//!
//! **Invariant**: pure; the same candidates give the same choice and the same reason.

use super::account::AccountId;

/// What is known of one account at the moment of choosing.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub id: AccountId,
    pub name: String,
    pub fit: Fit,
    /// A limit stands until then, in unix seconds.
    pub blocked_until: Option<i64>,
    /// Left alone for a moment for a reason other than a limit.
    pub resting: bool,
    /// What is left of the binding window in percent.
    pub headroom: Option<f64>,
    pub in_flight: u32,
    /// This turn has been refused by it already.
    pub tried: bool,
}

/// Whether an account's catalog carries the model in the resolved dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    Carries,
    OtherDialect,
    ModelUnknown,
    /// Its catalog could not be read yet.
    CatalogUnknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub id: AccountId,
    /// One phrase for people: why this account.
    pub reason: String,
}

/// Why no account can serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nobody {
    /// The pool is empty.
    NoAccounts,
    /// No account's catalog lists the model.
    ModelUnknown,
    /// Accounts list the model, none in the dialect that the mode resolved to.
    DialectNotCarried,
    /// Every account that could serve has reached a limit; the earliest reset in unix seconds.
    Exhausted { resets_at: Option<i64> },
    /// Every account that could serve has refused this turn.
    AllTried,
    /// Every account that could serve was refused a moment ago, for a reason other than a limit.
    Resting,
    /// No account's catalog could be read.
    CatalogUnknown,
}

/// `home` is the account that this conversation has used; `now` in unix seconds.
pub fn choose(candidates: &[Candidate], home: Option<&str>, now: i64) -> Result<Choice, Nobody> {
    if candidates.is_empty() {
        return Err(Nobody::NoAccounts);
    }
    let carrying: Vec<&Candidate> = candidates.iter().filter(|c| c.fit == Fit::Carries).collect();
    if carrying.is_empty() {
        let any = |fit| candidates.iter().any(|c| c.fit == fit);
        return Err(if any(Fit::OtherDialect) {
            Nobody::DialectNotCarried
        } else if any(Fit::CatalogUnknown) {
            Nobody::CatalogUnknown
        } else {
            Nobody::ModelUnknown
        });
    }
    let open = |c: &&Candidate| c.blocked_until.is_none_or(|until| until <= now);
    let usable = |c: &&Candidate| open(c) && c.headroom.is_none_or(|left| left > 0.0);
    let free: Vec<&Candidate> =
        carrying.iter().copied().filter(|c| !c.tried && !c.resting).filter(usable).collect();

    if let Some(at_home) = free.iter().find(|c| Some(c.id.as_str()) == home) {
        return Ok(Choice {
            id: at_home.id.clone(),
            reason: "the conversation is on this account".into(),
        });
    }
    let best =
        free.iter().copied().reduce(|best, other| if better(other, best) { other } else { best });
    match best {
        Some(best) => Ok(Choice { id: best.id.clone(), reason: reason(best, free.len()) }),
        None if carrying.iter().any(|c| c.resting && usable(c)) => Err(Nobody::Resting),
        None if carrying.iter().all(|c| c.tried && usable(c)) => Err(Nobody::AllTried),
        None => Err(Nobody::Exhausted {
            resets_at: carrying.iter().filter_map(|c| c.blocked_until).filter(|at| *at > now).min(),
        }),
    }
}

fn weight(candidate: &Candidate) -> Option<f64> {
    Some(candidate.headroom? / f64::from(candidate.in_flight + 1))
}

/// The earlier candidate wins a tie, so that the order is stable.
fn better(other: &Candidate, best: &Candidate) -> bool {
    match (weight(other), weight(best)) {
        (Some(other), Some(best)) => other > best,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => other.in_flight < best.in_flight,
    }
}

fn reason(chosen: &Candidate, free: usize) -> String {
    let carried = match chosen.in_flight {
        0 => "no turn in flight".to_owned(),
        1 => "1 turn in flight".to_owned(),
        n => format!("{n} turns in flight"),
    };
    match (free, chosen.headroom) {
        (1, _) => "the only account that can serve this turn".to_owned(),
        (_, Some(left)) => format!("{left:.0} % left and {carried}"),
        (_, None) => format!("usage not reported yet, {carried}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(id: &str, headroom: Option<f64>, in_flight: u32) -> Candidate {
        Candidate {
            id: id.into(),
            name: id.into(),
            fit: Fit::Carries,
            blocked_until: None,
            resting: false,
            headroom,
            in_flight,
            tried: false,
        }
    }

    fn chosen(candidates: &[Candidate], home: Option<&str>) -> Result<String, Nobody> {
        choose(candidates, home, 100).map(|choice| choice.id)
    }

    #[test]
    fn headroom_is_weighted_by_what_is_in_flight() {
        let pool = [account("a", Some(80.0), 1), account("b", Some(50.0), 0)];
        assert_eq!(chosen(&pool, None).as_deref(), Ok("b"));
    }

    #[test]
    fn unknown_usage_is_asked_last() {
        let pool = [account("a", None, 0), account("b", Some(1.0), 5)];
        assert_eq!(chosen(&pool, None).as_deref(), Ok("b"));
    }

    #[test]
    fn a_conversation_stays_until_its_account_cannot_serve() {
        let mut pool = [account("a", Some(5.0), 3), account("b", Some(90.0), 0)];
        assert_eq!(chosen(&pool, Some("a")).as_deref(), Ok("a"));
        pool[0].blocked_until = Some(200);
        assert_eq!(chosen(&pool, Some("a")).as_deref(), Ok("b"));
    }

    #[test]
    fn children_of_one_session_spread() {
        let mut pool =
            [account("a", Some(60.0), 0), account("b", Some(55.0), 0), account("c", Some(50.0), 0)];
        let mut used = Vec::new();
        for _ in 0..3 {
            let id = chosen(&pool, None).expect("an account");
            pool.iter_mut().filter(|c| c.id == id).for_each(|c| c.in_flight += 1);
            used.push(id);
        }
        assert_eq!(used, ["a", "b", "c"]);
    }

    #[test]
    fn nobody_says_why() {
        assert_eq!(chosen(&[], None), Err(Nobody::NoAccounts));
        let mut one = account("a", Some(50.0), 0);
        one.fit = Fit::ModelUnknown;
        assert_eq!(chosen(&[one.clone()], None), Err(Nobody::ModelUnknown));
        one.fit = Fit::OtherDialect;
        assert_eq!(chosen(&[one.clone()], None), Err(Nobody::DialectNotCarried));
        one.fit = Fit::CatalogUnknown;
        assert_eq!(chosen(&[one.clone()], None), Err(Nobody::CatalogUnknown));
        one.fit = Fit::Carries;
        one.resting = true;
        assert_eq!(chosen(&[one.clone()], None), Err(Nobody::Resting));
        one.resting = false;
        one.tried = true;
        assert_eq!(chosen(&[one.clone()], None), Err(Nobody::AllTried));
        one.blocked_until = Some(300);
        let mut other = account("b", Some(50.0), 0);
        other.blocked_until = Some(200);
        let exhausted = Nobody::Exhausted { resets_at: Some(200) };
        assert_eq!(chosen(&[one, other], None), Err(exhausted));
    }
}
