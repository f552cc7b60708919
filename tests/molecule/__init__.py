"""What pytest looks at on the hosts of Molecule's scenarios, while they are up: ``make molecule SCENARIO=default``."""
