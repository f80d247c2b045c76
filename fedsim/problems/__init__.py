"""Problems: clients whose gradients are exact, noisy or of minibatches, and the laws that they aim at."""
