"""What several folders of tests share: real databases, real processes, the engine and the store under test."""
