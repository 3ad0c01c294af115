//! What a tool may ask of the world.
