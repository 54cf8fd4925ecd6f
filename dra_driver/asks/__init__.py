"""What pods ask for by limits: ``pod -> Ask -> claim``. Nothing else in Python reads such limits or
makes claims of them. The chart's admission policies have the same rules in CEL
(policy-legacy-resources.yaml); tests/unit/asks/cases.py has the cases for both."""
