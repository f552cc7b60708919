"""What Molecule's scenarios have pytest look at: ``make molecule SCENARIO=default`` runs these, with hosts that are up."""
