//! Provides the container that a command needs: found, created, replaced, swept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::DockerError;
use super::call::{self, Ear, Mouth};
use super::container::{self, Container};
use super::engine::{Engine, Listed};
use super::this_program::Own;
use super::wire::Order;

/// The number of attempts while another program removes the same container, and the pause between them.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(50);

/// Containers of one installation.
#[derive(Debug)]
pub(super) struct Pool {
    engine: Engine,
    installation: String,
    /// The containers being created, so that concurrent commands create one.
    making: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Pool {
    pub(super) fn new(engine: Engine, installation: String) -> Self {
        Self { engine, installation, making: Mutex::default() }
    }

    /// Sends an order to a container, creating it if necessary.
    pub(super) async fn order(
        &self,
        own: &Own,
        container: &Container,
        order: &Order,
    ) -> Result<(Ear, Mouth), DockerError> {
        for _ in 0..TRIES {
            if let Some(talk) = call::order(&self.engine, own, &container.name, order).await? {
                return Ok(talk);
            }
            self.have(container).await?;
        }
        Err(given_up("the container exits as soon as it is created"))
    }

    /// Creates and starts a container, unless it exists.
    async fn have(&self, container: &Container) -> Result<(), DockerError> {
        let making = {
            let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(making.entry(container.name.clone()).or_default())
        };
        let _one = making.lock().await;
        for _ in 0..TRIES {
            self.engine.create(container).await?;
            match self.engine.start(&container.name).await {
                Ok(true) => return self.replace(container).await,
                // Somebody removes it at this moment; its name is free soon.
                Ok(false) => tokio::time::sleep(PAUSE).await,
                Err(error) => {
                    // A container that cannot be started must not keep its name.
                    let _ = self.engine.remove(&container.name).await;
                    return Err(error);
                }
            }
        }
        Err(given_up("the container is removed as soon as it is created"))
    }

    /// Retires the containers that this one replaces, and removes abandoned ones.
    async fn replace(&self, container: &Container) -> Result<(), DockerError> {
        let label = |name: &str| container.labels.get(name).map(String::as_str).unwrap_or_default();
        let (key, variant) = (label(container::KEY), label(container::VARIANT));
        let digest = label(container::DIGEST);
        for other in self.engine.list(&self.installation).await? {
            let replaced = other.key == key && other.variant == variant && other.digest != digest;
            if other.running && replaced {
                self.engine.retire(&other.id).await?;
            } else if other.left && other.digest != digest {
                self.engine.remove(&other.id).await?;
            }
        }
        Ok(())
    }

    pub(super) async fn list(&self) -> Result<Vec<Listed>, DockerError> {
        self.engine.list(&self.installation).await
    }
}

fn given_up(reason: &str) -> DockerError {
    DockerError::Engine { step: "keep a container", reason: reason.to_owned() }
}
