//! A cache of compiled schemas.
//!
//! A source that is read again, and a factory that makes its tool for every caller, bring the same schemas
//! again and again. They are found by digest. Compiling happens outside of all locks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use claw_core::tool::Digest;
use serde_json::Value;

use claw_schema::validate::{self, SchemaError, Validator};

/// Schemas per generation. Two generations are kept: schemas not used while one filled up are dropped.
const GENERATION: usize = 1024;

type Compiled = Result<Arc<Validator>, SchemaError>;
type Slot = Arc<OnceLock<Compiled>>;

/// Recently compiled schemas, at most two generations of them.
#[derive(Default)]
pub(super) struct Schemas(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<Digest, Slot>,
    old: HashMap<Digest, Slot>,
}

impl Schemas {
    /// The compiled schema. Concurrent callers with the same schema compile it once.
    pub(super) fn compile(&self, schema: &Value) -> Compiled {
        // A schema that is nested too deeply cannot even be hashed.
        validate::examine(schema)?;
        let slot = self.slot(Digest::of(schema));
        slot.get_or_init(|| Validator::compile(schema).map(Arc::new)).clone()
    }

    fn slot(&self, digest: Digest) -> Slot {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Generations { young, old } = &mut *generations;
        if let Some(slot) = young.get(&digest) {
            return Arc::clone(slot);
        }
        let slot = old.remove(&digest).unwrap_or_default();
        if young.len() >= GENERATION {
            *old = std::mem::take(young);
        }
        young.insert(digest, Arc::clone(&slot));
        slot
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema(at: usize) -> Value {
        json!({ "type": "object", "title": format!("schema {at}") })
    }

    fn len(schemas: &Schemas) -> usize {
        let generations = schemas.0.lock().unwrap();
        generations.young.len() + generations.old.len()
    }

    #[test]
    fn a_schema_is_compiled_once() {
        let schemas = Schemas::default();
        let first = schemas.compile(&schema(0)).unwrap();
        assert!(Arc::ptr_eq(&first, &schemas.compile(&schema(0)).unwrap()));
        assert!(!Arc::ptr_eq(&first, &schemas.compile(&schema(1)).unwrap()));
        let wrong = json!({ "type": 7 });
        assert_eq!(schemas.compile(&wrong).unwrap_err(), schemas.compile(&wrong).unwrap_err());
        assert_eq!(len(&schemas), 3);
    }

    #[test]
    fn refuses_to_grow_with_every_schema_that_a_server_invents() {
        let schemas = Schemas::default();
        let kept = schemas.compile(&schema(0)).unwrap();
        for at in 1..3 * GENERATION {
            schemas.slot(Digest::of(&schema(at)));
            schemas.slot(Digest::of(&schema(0)));
        }
        assert!(len(&schemas) <= 2 * GENERATION, "{}", len(&schemas));
        assert!(Arc::ptr_eq(&kept, &schemas.compile(&schema(0)).unwrap()), "used all the time, and dropped");
    }

    #[test]
    fn refuses_a_schema_nested_too_deeply_to_be_digested() {
        let within = |inner, _| Value::Object([("properties".to_owned(), inner)].into_iter().collect());
        let deep = (0..10_000).fold(json!({}), within);
        assert!(matches!(Schemas::default().compile(&deep), Err(SchemaError::Excessive(_))));
        validate::dismantle(deep);
    }
}
